"""Calls in the order in which a program made them: which storages they share, and which of these were gone when."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from conformance.calls import file
from conformance.calls.model import Call


@dataclass(frozen=True, slots=True)
class Step:
    """One call among others. Storages of the device have numbers, which are given once; those of the host have none."""

    call: Call
    storages: tuple[int | None, ...]  # of each tensor argument
    results: tuple[int | None, ...] = ()  # of each leaf of the result, as the program got it
    freed: tuple[int, ...] = ()  # storages that were alive at the call before, and are not at this one


@dataclass(frozen=True, slots=True)
class Gaps:
    """What of a program's calls a sequence does not hold. ``missed``: op -> how many calls."""

    cut: int = 0  # the first calls, for want of room
    missed: tuple[tuple[str, int], ...] = ()


def part(steps: Sequence[Step], kept: Collection[int]) -> list[Step]:
    """The steps at these indices. What was freed before a step that is left out is freed before the next one kept."""
    found: list[Step] = []
    freed: list[int] = []
    for i, step in enumerate(steps):
        freed += step.freed
        if i in kept:
            found.append(replace(step, freed=tuple(freed)))
            freed = []
    return found


def lone(call: Call, first: int = 0) -> Step:
    """One call with storages of its own, numbered from ``first``."""
    numbers: dict[str, int] = {}
    slots = call.case.sample.tensors
    return Step(call, tuple(None if s.on_host else numbers.setdefault(s.pool, first + s.index) for s in slots))


def taken_apart(steps: Sequence[Step]) -> list[Step]:
    """The same calls, each with storages of its own, made of the bytes that it was recorded with."""
    most = max((len(step.storages) for step in steps), default=0)
    return [lone(step.call, i * most) for i, step in enumerate(steps)]


def kept_alive(steps: Sequence[Step]) -> list[Step]:
    """The same, with every storage alive to the end."""
    return [replace(step, freed=()) for step in steps]


def without_strangers(steps: Sequence[Step]) -> list[Step]:
    """The same, where what is freed is only what one of the steps has to do with."""
    known = {n for step in steps for n in (*step.storages, *step.results)}
    return [replace(step, freed=tuple(n for n in step.freed if n in known)) for step in steps]


def save(path: Path, steps: Sequence[Step], gaps: Gaps = Gaps()) -> None:
    """Write them, each storage's bytes once."""
    links = [[step.storages, step.results, step.freed] for step in steps]
    file.save(path, [step.call for step in steps], facts={"links": links, "gaps": asdict(gaps)})


def load(path: Path) -> tuple[list[Step], Gaps]:
    """Read them. Raises CallsError."""
    calls, facts = file.load_all(path)
    links = facts.get("links")
    if links is None or len(links) != len(calls):
        raise file.CallsError(f"{path}: recorded calls, but no sequence of them; only triage writes one")
    steps = [Step(call, *map(tuple, link)) for call, link in zip(calls, links, strict=True)]
    return steps, Gaps(facts["gaps"]["cut"], tuple((op, n) for op, n in facts["gaps"]["missed"]))


def names(steps: Sequence[Step]) -> list[str]:
    """The ops, in their order."""
    return [step.call.overload for step in steps]
