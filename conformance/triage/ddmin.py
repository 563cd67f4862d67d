"""A sequence that fails -> a part of it, in the same order, that fails and of which nothing can be left out; pure.

Delta debugging's minimizing algorithm (A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input,
IEEE TSE 28(2), 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Fails = Callable[[Sequence[int]], bool | None]  # of some indices; None: it is not to be asked any more


@dataclass(frozen=True, slots=True)
class Reduced:
    """``kept``: indices, ascending. ``minimal``: without any single one of them it does not fail."""

    kept: tuple[int, ...]
    minimal: bool


def ddmin(count: int, fails: Fails) -> Reduced:
    """Of ``range(count)``, which fails, a part that ``fails`` too. Never asks about the same part twice."""
    known: dict[tuple[int, ...], bool | None] = {tuple(range(count)): True}

    def ask(indices: Sequence[int]) -> bool | None:
        part = tuple(indices)
        if part not in known:
            known[part] = fails(part)
        return known[part]

    if ask(()):
        return Reduced((), True)
    kept, parts = tuple(range(count)), 2
    while len(kept) > 1:
        smaller = _smaller(kept, min(parts, len(kept)), ask)
        if smaller is None:
            return Reduced(kept, False)
        if not smaller and parts >= len(kept):
            break
        parts = 2 * parts if not smaller else 2 if 2 * len(smaller) <= len(kept) else max(parts - 1, 2)
        kept = smaller or kept
    return Reduced(kept, True)


def _smaller(kept: tuple[int, ...], parts: int, ask: Fails) -> tuple[int, ...] | None:
    """One of so many parts that fails, the last first, or else all but one of them; () if none; None: not answered."""
    edges = [len(kept) * i // parts for i in range(parts + 1)]
    spans = list(pairwise(edges))[::-1]
    candidates = [kept[a:b] for a, b in spans]
    candidates += [kept[:a] + kept[b:] for a, b in reversed(spans)] if parts > 2 else []
    for candidate in candidates:
        answer = ask(candidate)
        if answer is None:
            return None
        if answer:
            return candidate
    return ()
