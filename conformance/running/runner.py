"""Runs cells in a child, survives its death, and names the case that killed it.

The parent has imported everything and never touched the device, so a forked child is ready milliseconds after a death;
:mod:`conformance.running.isolation` has others for backends that cannot live past a fork. Parent and child share one
page of memory, in which the child notes the case it is about to call, and on which side.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conformance.running.child import BROKEN, Child, Hang
from conformance.running.child import Death as ChildDeath
from conformance.running.deaths import SECONDS, Finding, Inquest
from conformance.running.host_leaks import Batch, Lost, beyond, culprit, searchable
from conformance.running.isolation import Children, Forking
from conformance.running.protocol import GATE, SEARCH, Stretch, Work, kernels_request, reference_request
from conformance.vocabulary import CaseFailure, CellId, Check, Death, Fact, Mismatch, Observation, Route, Status

# Deaths within one cell after which its remaining cases are given up; the observation says so.
DEATHS_PER_CELL = 3
SEARCH_TIMEOUT = 120  # seconds, beside those of a cell, that a search for leaks may take
# Fresh processes in which the CPU side runs alone before a death on the CPU side is said not to be its own.
REFERENCES = 5


class Runner:
    """A parent with one child at a time. ``timeout`` is in seconds a cell."""

    def __init__(
        self, work: Work, timeout: float, children: Children | None = None, inquest_s: float = SECONDS
    ) -> None:
        self._work = work
        self._timeout = timeout
        self._children = children or Forking(work)
        self._child: Child | None = None
        self._lived: list[tuple[Stretch, float]] = []  # what the child has run, and the seconds that took
        self._batch = Batch() if searchable() else None
        self._baseline: list[Lost] | None = None  # what a child has lost before its first cell, once that was asked
        self._inquest = Inquest(self._dies, self._case_by_case, inquest_s)

    def observe(self, cell: CellId, last: bool = False) -> Observation:
        """Run every case of a cell. A death is charged to its case, and the cases after it still run.

        Under LeakSanitizer host memory is searched after a batch of cells, and after the ``last`` one of all.
        """
        observation = self._with_kernels(self._observe(cell))
        if self._batch is None:
            return observation
        return self._search(observation, self._batch, last)

    def _observe(self, cell: CellId) -> Observation:
        parts: list[Observation] = []
        first: int | None = 0
        while first is not None:
            part, first = self._attempt(cell, first)
            parts.append(part)
            left = len(self._work.case_ids(cell)) - first if first is not None else 0
            deaths = sum(p.status in (Status.CRASH, Status.TIMEOUT) or bool(p.signal) for p in parts)
            if left <= 0 or deaths >= DEATHS_PER_CELL:
                return merge(parts, left=max(left, 0))
        return merge(parts, left=0)

    def _with_kernels(self, observation: Observation) -> Observation:
        """A failing cell's observation with the operators that ran in its first failing case that can be run again.

        The child that found the failure runs the case once more, after it has said so: should it die of that, the
        failure stays what it was. A case that died is not run again on the device. Where torch or CPU's kernel makes
        the call from other operators, on the device as on CPU, CPU's side of the case is run instead.
        """
        failure = next((f for f in observation.failures if f.mismatches), None)
        on_cpu = observation.status is not Status.FAIL
        if on_cpu and observation.route in (Route.COMPOSITE, Route.FALLBACK):
            failure = next((f for f in observation.failures if f.death and f.death.phase == "device"), None)
        elif on_cpu:
            failure = None
        if failure is None:
            return observation
        calls = self._kernels(observation.cell, failure.case, on_cpu=on_cpu)
        found = replace(failure, calls=calls)
        return replace(observation, failures=tuple(found if f is failure else f for f in observation.failures))

    def _kernels(self, cell: CellId, case: str, *, on_cpu: bool) -> tuple[str, ...]:
        """The operators that run in a case; none where the child that runs it ends."""
        self._child = self._child or self._children.fresh()
        index = self._work.case_ids(cell).index(case)
        self._children.progress.note(index, "")
        reply = self._child.ask(kernels_request(cell, index, on_cpu=on_cpu), self._timeout)
        if isinstance(reply, dict):
            return tuple(reply["kernels"])
        self._drop()
        return ()

    def close(self) -> None:
        """End the child, and those that stand by."""
        self._drop()
        self._children.close()

    def gate(self) -> str:
        """Try the bring-up gate in a child. Returns what is broken, "" when nothing is; a child's last words follow."""
        child = self._children.fresh()
        self._children.progress.note(0, "")
        reply = child.ask(GATE, self._timeout)
        if isinstance(reply, dict):
            self._child = child
        else:
            child.close()
        if isinstance(reply, dict):
            return str(reply["broken"])
        how = f"hung for {reply.seconds:g} s" if isinstance(reply, Hang) else f"died: {signal_name(reply.status)}"
        index, _ = self._children.progress.read()
        return f"{self._work.primitives()[index]}: the process that tried it {how}\n{reply.log}".strip()

    def _attempt(self, cell: CellId, first: int) -> tuple[Observation, int | None]:
        """(what was observed, the case to go on from, if the child died or is not to be trusted any more)."""
        self._child = self._child or self._children.fresh()
        self._children.progress.note(first, "")
        started = time.perf_counter_ns()
        reply = self._child.ask(Stretch(cell, first).request(), self._timeout)
        wall = time.perf_counter_ns() - started
        if isinstance(reply, dict):
            self._lived.append((Stretch(cell, first), wall / 1e9))
            if reply["go_on"] is not None:
                self._drop()  # a reference that reads what nobody wrote may write there too: start afresh
            return Observation.from_json(reply["observation"]), reply["go_on"]
        return self._after_death(cell, first, reply, wall)

    def _after_death(self, cell: CellId, first: int, how: ChildDeath | Hang, wall: int) -> tuple[Observation, int]:
        lived = self._lived
        self._drop()
        index, phase = self._children.progress.read()
        if index > first:
            lived = [*lived, (Stretch(cell, first, index), wall / 1e9)]
        end = _End(how, self._work.case_ids(cell)[index], phase, index - first + 1, wall)
        route = self._work.route(cell)
        tries = REFERENCES if phase == "cpu" and isinstance(how, ChildDeath) else 1
        if phase and not end.broken and self._reference_dies(cell, index, tries):
            return reference_death(cell, route, end), index + 1
        observation = death(cell, route, end)
        if observation.status is Status.CRASH:
            signature = (cell.overload, observation.signal, phase)
            finding = self._inquest.of(signature, Stretch(cell, index, index + 1), lived)
            observation = told(observation, finding, self._name(finding.after))
        return observation, index + 1

    def _drop(self) -> None:
        if self._child:
            self._child.close()
            self._child = None
        self._lived = []

    def _reference_dies(self, cell: CellId, index: int, tries: int) -> bool:
        """Whether the CPU side of a case, alone in fresh children, ends so as well: then the device is not to blame."""
        for left in reversed(range(tries)):
            child = self._children.fresh()
            reply = child.ask(reference_request(cell, index), self._timeout)
            if isinstance(reply, dict) and not left:
                self._child = child  # it has run nothing but the CPU's side: the next case needs no other
                return False
            child.close()
            if not isinstance(reply, dict):
                return not broken(reply)
        return False

    def _dies(self, order: Sequence[Stretch]) -> bool:
        """Whether a fresh process that runs these one after the other dies in the last of them."""
        child = self._children.fresh()
        try:
            replies = (child.ask(stretch.request(), self._timeout) for stretch in order)
            last = next(((i, r) for i, r in enumerate(replies, 1) if not isinstance(r, dict)), None)
        finally:
            child.close()
        return last is not None and last[0] == len(order) and isinstance(last[1], ChildDeath) and not broken(last[1])

    def _search(self, observation: Observation, batch: Batch, last: bool) -> Observation:
        """The observation of a batch's newest cell, with what the batch has lost, if it is time to look for that."""
        if self._child is None:  # what ran in a child that is gone cannot be searched
            batch.cells = []
            return observation
        batch.cells.append(observation.cell)
        if not last and not batch.due():
            return observation
        cells, started = batch.cells, time.monotonic()
        lost = self._lost(self._child)
        batch.searched(time.monotonic() - started)
        if not lost:
            return observation
        return _with_leak(observation, lost, cells, culprit(cells, self._loses))

    def _lost(self, child: Child) -> list[Lost]:
        """What a child has lost since its search before, and not before its first cell."""
        found = self._found(child)
        if found and self._baseline is None:
            idle = self._children.fresh()
            self._baseline = self._found(idle)
            idle.close()
        return beyond(found, self._baseline or ())

    def _found(self, child: Child) -> list[Lost]:
        reply = child.ask(SEARCH, self._timeout + SEARCH_TIMEOUT)
        if isinstance(reply, dict):
            return [Lost(**{**one, "at": tuple(one["at"])}) for one in reply["lost"]]
        return [Lost("", 1, trouble=reply.log or "it said nothing")]

    def _loses(self, cells: Sequence[CellId]) -> bool:
        """Whether these cells, in a fresh child, lose memory again."""
        child = self._children.fresh()
        try:
            for cell in cells:
                if not isinstance(child.ask(Stretch(cell).request(), self._timeout), dict):
                    return False
            return bool(self._lost(child))
        finally:
            child.close()

    def _case_by_case(self, stretch: Stretch) -> list[Stretch]:
        stop = stretch.stop if stretch.stop is not None else len(self._work.case_ids(stretch.cell))
        return [Stretch(stretch.cell, i, i + 1) for i in range(stretch.first, stop)]

    def _name(self, stretch: Stretch | None) -> str:
        """A stretch as a person knows it: a case's id, or a cell's."""
        if stretch is None:
            return ""
        one = stretch.stop == stretch.first + 1
        return self._work.case_ids(stretch.cell)[stretch.first] if one else str(stretch.cell)


@dataclass(frozen=True, slots=True)
class _End:
    """How a child ended, in which case, on which side, after how many cases and nanoseconds of the cell."""

    how: ChildDeath | Hang
    case: str
    phase: str
    cases: int
    wall_ns: int

    @property
    def broken(self) -> bool:
        return broken(self.how)

    @property
    def signal(self) -> str:
        return signal_name(self.how.status) if isinstance(self.how, ChildDeath) else ""

    def record(self) -> Death:
        """What is kept of it."""
        if isinstance(self.how, Hang):
            return Death(seconds=self.how.seconds, phase=self.phase, log=self.how.log)
        log = "" if self.how.report else self.how.log
        return Death(self.signal, phase=self.phase, report=self.how.report, log=log)


def death(cell: CellId, route: str, end: _End) -> Observation:
    """The observation of a cell whose child died or hung."""
    status = Status.TIMEOUT if isinstance(end.how, Hang) else Status.ERROR if end.broken else Status.CRASH
    failure = CaseFailure(end.case, death=end.record())
    return Observation(cell, route, status, end.cases, (failure,), signal=end.signal, wall_ns=end.wall_ns)


def reference_death(cell: CellId, route: str, end: _End) -> Observation:
    """As :func:`death`, where the CPU side dies by itself: that is not the device's fault."""
    what = f"died: {end.signal}" if end.signal else f"did not return within {end.record().seconds:g} s"
    reason = f"the CPU reference of {end.case} {what}"
    return Observation(
        cell, route, Status.UNSUPPORTED, end.cases, reason=reason, signal=end.signal, wall_ns=end.wall_ns
    )


def told(observation: Observation, finding: Finding, after: str) -> Observation:
    """The observation of a death with what fresh processes say about it."""
    (failure,) = observation.failures
    assert failure.death
    died = replace(failure.death, finding=finding.record(after))
    return replace(observation, failures=(replace(failure, death=died),))


def broken(how: ChildDeath | Hang) -> bool:
    """Whether it was the suite itself that broke."""
    return isinstance(how, ChildDeath) and how.status == BROKEN


def _with_leak(
    observation: Observation, lost: Sequence[Lost], cells: Sequence[CellId], guilty: CellId | None
) -> Observation:
    """An observation that fails for what was lost by its batch, charged to the cell that loses it alone."""
    facts = {
        "kind": Fact.HOST_LEAK.value, "cells": len(cells), "guilty": str(guilty or ""),
        "lost": [one.facts() for one in lost],
    }  # fmt: skip
    failure = CaseFailure(str(guilty or observation.cell), (Mismatch(Check.LEAK, "", facts),))
    status = min(observation.status, Status.FAIL, key=_WORST.index)
    return replace(observation, status=status, failures=(*observation.failures, failure))


def signal_name(status: int) -> str:
    """``SIGSEGV`` for a wait status of a process killed by it, ``exit code 3`` for one that exited."""
    code = -status if status < 0 else 0
    if not code:
        return f"exit code {status}"
    try:
        return signal.Signals(code).name
    except ValueError:
        return f"signal {code}"


# Which status a cell has when its parts differ: the worst one first.
_WORST = (Status.ERROR, Status.CRASH, Status.TIMEOUT, Status.FAIL, Status.PASS, Status.UNSUPPORTED, Status.NOT_REACHED)


def merge(parts: list[Observation], left: int) -> Observation:
    """One observation of the runs that a cell took. ``left``: cases given up after too many deaths."""
    if len(parts) == 1 and not left:
        return parts[0]
    status = min((p.status for p in parts), key=_WORST.index)
    reasons = [p.reason for p in parts if p.reason]
    if left:
        reasons.append(f"{left} more cases not run after {len(parts)} deaths")
    return Observation(
        parts[0].cell,
        parts[0].route,
        status,
        sum(p.cases for p in parts),
        tuple(f for p in parts for f in p.failures),
        reason="; ".join(reasons),
        signal=next((p.signal for p in parts if p.signal), ""),
        wall_ns=sum(p.wall_ns for p in parts),
        cpu_ns=sum(p.cpu_ns for p in parts),
        raw_ns=sum(p.raw_ns for p in parts),
        compared=sum(p.compared for p in parts),
    )
