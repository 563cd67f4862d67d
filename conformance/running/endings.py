"""Observations of cells whose child ended, and the merged observation of a cell's runs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conformance.records import NO_ANSWER, CaseFailure, Death, Lacking, Mismatch, Observation, PlacedArgument
from conformance.running import crash_log
from conformance.running.child import Death as ChildDeath
from conformance.running.child import Hang
from conformance.running.deaths import Finding
from conformance.running.host_leaks import Lost
from conformance.support.signals import signal_name
from conformance.vocabulary import CellId, Check, Fact, Status


@dataclass(frozen=True, slots=True)
class End:
    """The end of a child: the case, the side (``phase``), and the cell's number of cases and nanoseconds so far."""

    how: ChildDeath | Hang
    case: str
    phase: str
    cases: int
    wall_ns: int
    script: tuple[str, ...] = ()  # if the program writes scripts: the lines of the script that ran

    @property
    def broken(self) -> bool:
        return broken(self.how)

    @property
    def signal(self) -> str:
        return signal_name(self.how.status) if isinstance(self.how, ChildDeath) else ""

    def record(self) -> Death:
        """Return the record of the death."""
        if self.broken:
            return Death(self.signal, phase=self.phase, log=self.how.log)
        said = crash_log.parse(self.how.log)
        known = Death(self.signal, phase=self.phase, lines=self.script[: said.script_line or None])
        if isinstance(self.how, Hang):
            return replace(known, seconds=self.how.seconds, log=said.message, python=said.python)
        if self.how.report:
            return replace(known, report=self.how.report)
        return replace(known, log=said.message, stack=said.stack, python=said.python)


def death(cell: CellId, route: str, end: End, arguments: tuple[PlacedArgument, ...] = ()) -> Observation:
    """Return the observation of a cell whose child died or hung in a case with these arguments."""
    status = Status.TIMEOUT if isinstance(end.how, Hang) else Status.ERROR if end.broken else Status.CRASH
    failure = CaseFailure(end.case, arguments=arguments, death=end.record())
    return Observation(cell, route, status, end.cases, (failure,), signal=end.signal, wall_ns=end.wall_ns)


def reference_death(cell: CellId, route: str, end: End) -> Observation:
    """Return the observation of a cell whose CPU side dies without the device, which is not the device's fault."""
    what = f"died: {end.signal}" if end.signal else f"did not return within {end.record().seconds:g} s"
    reason = f"the CPU reference of {end.case} {what}"
    return Observation(
        cell, route, Status.UNSUPPORTED, end.cases, reason=reason, signal=end.signal or NO_ANSWER, wall_ns=end.wall_ns
    )


def unsound_reference(cell: CellId, route: str, end: End) -> Observation:
    """Return the observation of a cell that died by chance, in a case whose CPU reference reads past its arguments."""
    reason = f"the CPU reference of {end.case} reads memory that nobody wrote; a process that did so died: {end.signal}"
    return Observation(
        cell, route, Status.UNSUPPORTED, end.cases, reason=reason, signal=end.signal, wall_ns=end.wall_ns
    )


def told(observation: Observation, finding: Finding, after: str) -> Observation:
    """Return the observation of a death with the result of repeating the death. ``after``: the id of the cause."""
    (failure,) = observation.failures
    assert failure.death
    died = replace(failure.death, finding=finding.record(after))
    return replace(observation, failures=(replace(failure, death=died),))


def with_stack(observation: Observation, stack: tuple[str, ...], operators: tuple[str, ...]) -> Observation:
    """Return the observation of a death with its native stack and the operators in that stack."""
    (failure,) = observation.failures
    assert failure.death
    died = replace(failure.death, stack=stack, operators=operators)
    return replace(observation, failures=(replace(failure, death=died),))


def broken(how: ChildDeath | Hang) -> bool:
    """Return whether the suite itself failed in the child."""
    return isinstance(how, ChildDeath) and how.broken


def with_leak(
    observation: Observation, lost: Sequence[Lost], cells: Sequence[CellId], guilty: CellId | None
) -> Observation:
    """Return the observation with a failure for the leaks of ``cells``. ``guilty`` is the cell that leaks alone."""
    facts = {
        "kind": Fact.HOST_LEAK.value, "cells": len(cells), "guilty": str(guilty or ""),
        "lost": [one.facts() for one in lost],
    }  # fmt: skip
    failure = CaseFailure(str(guilty or observation.cell), (Mismatch(Check.LEAK, "", facts),))
    status = min(observation.status, Status.FAIL, key=_WORST.index)
    return replace(observation, status=status, failures=(*observation.failures, failure))


# The status of a cell is the worst status of its parts. The worst is first.
_WORST = (Status.ERROR, Status.CRASH, Status.TIMEOUT, Status.FAIL, Status.PASS, Status.UNSUPPORTED, Status.NOT_REACHED)


# The fields of an observation that are sums over its parts.
_COUNTED = ("cases", "wall_ns", "cpu_ns", "raw_ns", "compared")


def deaths(parts: Iterable[Observation]) -> int:
    """Return the number of these runs of a cell whose process died or hung."""
    return sum(p.status in (Status.CRASH, Status.TIMEOUT) or bool(p.signal) for p in parts)


def merge(parts: list[Observation], left: int) -> Observation:
    """Merge the observations of a cell's runs into one. ``left``: number of cases not run after too many deaths."""
    if len(parts) == 1 and not left:
        return parts[0]
    status = min((p.status for p in parts), key=_WORST.index)
    reasons = list(dict.fromkeys(p.reason for p in parts if p.reason))
    if left:
        reasons.append(f"{left} more cases not run after {deaths(parts)} deaths")
    sums = {name: sum(getattr(p, name) for p in parts) for name in _COUNTED}
    return replace(
        parts[0],
        status=status,
        failures=tuple(f for p in parts for f in p.failures),
        reason="; ".join(reasons),
        signal=_first(p.signal for p in parts),
        partial=status is Status.PASS and any(p.partial for p in parts),
        script=_first(p.script for p in parts),
        lacking=_added(parts),
        **sums,
    )


def _added(parts: Iterable[Observation]) -> tuple[Lacking, ...]:
    cases: Counter[str] = Counter()
    for one in (one for part in parts for one in part.lacking):
        cases[one.overload] += one.cases
    return tuple(Lacking(*one) for one in sorted(cases.items()))


def _first(texts: Iterable[str]) -> str:
    return next(filter(None, texts), "")
