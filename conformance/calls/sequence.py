"""A program's calls in order, with the storages that they share and the lifetimes of the storages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from conformance.calls import file
from conformance.calls.model import Call


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a sequence. Each storage on the device has a number of its own. A storage on the host has None."""

    call: Call
    storages: tuple[int | None, ...]  # of each tensor argument
    results: tuple[int | None, ...] = ()  # of each tensor in the program's result
    freed: tuple[int, ...] = ()  # storages that were freed between the previous call and this one


@dataclass(frozen=True, slots=True)
class Gaps:
    """The calls that a sequence lacks. ``missed``: pairs of an op and the number of its calls that are not stored."""

    cut: int = 0  # number of calls at the start, dropped to limit the size
    missed: tuple[tuple[str, int], ...] = ()


def part(steps: Sequence[Step], kept: Collection[int]) -> list[Step]:
    """Return the steps at these indices. Storages freed before a dropped step are freed before the next kept step."""
    found: list[Step] = []
    freed: list[int] = []
    for i, step in enumerate(steps):
        freed += step.freed
        if i in kept:
            found.append(replace(step, freed=tuple(freed)))
            freed = []
    return found


def lone(call: Call, first: int = 0) -> Step:
    """Return a step whose storages belong to this call alone, numbered from ``first``."""
    numbers: dict[str, int] = {}
    slots = call.case.sample.tensors
    return Step(call, tuple(None if s.on_host else numbers.setdefault(s.pool, first + s.index) for s in slots))


def taken_apart(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without shared storages: each step has storages of its own, with the recorded bytes."""
    most = max((len(step.storages) for step in steps), default=0)
    return [lone(step.call, i * most) for i, step in enumerate(steps)]


def kept_alive(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without frees: all storages live to the end."""
    return [replace(step, freed=()) for step in steps]


def without_strangers(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without frees of storages that no step uses or returns."""
    known = {n for step in steps for n in (*step.storages, *step.results)}
    return [replace(step, freed=tuple(n for n in step.freed if n in known)) for step in steps]


def save(path: Path, steps: Sequence[Step], gaps: Gaps = Gaps()) -> None:
    """Write steps to a file, each storage once."""
    links = [[step.storages, step.results, step.freed] for step in steps]
    file.save(path, [step.call for step in steps], facts={"links": links, "gaps": asdict(gaps)})


def load(path: Path) -> tuple[list[Step], Gaps]:
    """Return the steps and gaps of a file. Raises CallsError."""
    calls, facts = file.load_all(path)
    links = facts.get("links")
    if links is None or len(links) != len(calls):
        raise file.CallsError(
            f"{path}: recorded calls without a sequence; expected a file that `conformance triage` wrote"
        )
    steps = [Step(call, *map(tuple, link)) for call, link in zip(calls, links, strict=True)]
    return steps, Gaps(facts["gaps"]["cut"], tuple((op, n) for op, n in facts["gaps"]["missed"]))


def names(steps: Sequence[Step]) -> list[str]:
    """Return the overloads of the steps."""
    return [step.call.overload for step in steps]
