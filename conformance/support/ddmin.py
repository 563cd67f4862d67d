"""Minimization of a failing sequence: finds a failing part in the same order, without superfluous elements. Pure.

Delta debugging's minimizing algorithm (A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input,
IEEE TSE 28(2), 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Fails = Callable[[Sequence[int]], bool | None]  # whether these indices fail; None if time ran out


@dataclass(frozen=True, slots=True)
class Reduced:
    """``kept``: ascending indices that fail. ``minimal``: without any one of them they do not fail."""

    kept: tuple[int, ...]
    minimal: bool


def ddmin(count: int, fails: Fails) -> Reduced:
    """Return a minimal failing part of ``range(count)``, which is known to fail. No part is tested twice."""
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
    """Return a failing part, or the failing rest without a part; () if there is none; None if time ran out."""
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
