"""A runner of cells in a child process. If the child dies, it finds the case and continues in a fresh child.

The parent has imported all modules and never used the device, so a fresh forked child is ready in milliseconds. For
backends that do not work after a fork, :mod:`conformance.running.isolation` spawns children. Parent and child share a
page of memory, in which the child notes the case and the side before each call.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Any

from conformance.records import Gate, Observation, Setting
from conformance.running.bring_up import BringUp
from conformance.running.child import Child, Hang
from conformance.running.child import Death as ChildDeath
from conformance.running.crash_log import CrashLog
from conformance.running.deaths import SECONDS, DeathInquiry
from conformance.running.endings import (
    End,
    broken,
    death,
    deaths,
    merge,
    reference_death,
    told,
    unsound_reference,
    with_stack,
)
from conformance.running.failures import FailureInquiry
from conformance.running.fresh_runs import FreshRuns
from conformance.running.host_leaks import searchable
from conformance.running.isolation import Children, Forking
from conformance.running.late_errors import LateErrorInquiry
from conformance.running.leak_search import LeakSearch
from conformance.running.protocol import (
    Stretch,
    Work,
    kernels_request,
    precede_request,
    reference_request,
    subnormals_request,
    without_request,
)
from conformance.vocabulary import CellId, Route, Status

# Deaths within one cell after which its remaining cases do not run. The observation's reason says so.
DEATHS_PER_CELL = 3
# The timeout of a scenario in timeouts of an op's cell. Some scenarios start processes, which load torch.
SCENARIO_TIMES = 5
# Number of fresh processes in which the CPU side must survive alone before a death is blamed on the device. If a CPU
# kernel damages the heap, the process may die in that kernel, or later, on the device side, or not at all.
REFERENCES = 5

# The routes by which the device's side usually runs a CPU kernel too. A kernel that reads past its arguments does so on
# both sides, and the bytes that it reads there depend on what the process ran before.
_BY_CPU = (Route.COMPOSITE, Route.FALLBACK)


class _Reference(Enum):
    """The result of running only the CPU side of a case."""

    SOUND = auto()
    UNSOUND = auto()  # its results depend on memory outside its arguments
    DIES = auto()


class Runner:
    """A runner of cells in one child at a time. ``timeout``: seconds for each cell of an op.

    ``inquiry_s``: seconds for repeating crashes. ``failures_s``: seconds for repeating cases that differ, 0 to repeat
    none. ``setting``: the cases that run before each cell, and the most fresh processes in which a cell runs until it
    fails.
    """

    def __init__(
        self, work: Work, timeout: float, children: Children | None = None, inquiry_s: float = SECONDS,
        failures_s: float = 0.0, setting: Setting | None = None,
    ) -> None:  # fmt: skip
        self._work = work
        self._timeout = timeout
        self._children = children or Forking(work)
        self._child: Child | None = None
        self._lived: list[tuple[Stretch, float]] = []  # the stretches that the child has run, with their seconds
        self._leaks = LeakSearch(self._fresh, self._limit) if searchable() else None
        self._alone = FreshRuns(self._fresh, self._limit)
        self._without: tuple[str, ...] = ()
        self._subnormals: tuple[str, ...] = ()
        self._inquiry = DeathInquiry(self._alone.dies, self._case_by_case, inquiry_s)
        self._failures = FailureInquiry(self._case_by_case, failures_s) if failures_s and not setting else None
        self._setting = setting
        self._late_errors = LateErrorInquiry()

    @property
    def searches(self) -> bool:
        """Whether this runner searches host memory for leaks, with LeakSanitizer."""
        return self._leaks is not None

    def observe(self, cell: CellId) -> Observation:
        """Run every case of a cell. A death is attributed to its case, and the remaining cases still run.

        If :attr:`searches` is true, leaks are searched for after each batch of cells. See also :meth:`searched`.
        """
        observed = self._in_setting(cell, self._setting) if self._setting else self._observe(cell)
        observation = self._with_kernels(observed)
        if self._leaks is None or self._child is None:
            return observation
        self._leaks.add(cell)
        return self.searched(observation) if self._leaks.is_due else observation

    def searched(self, observation: Observation) -> Observation:
        """Return the observation of the last cell, with the leaks of all cells since the previous search."""
        return self._leaks.searched(observation, self._child) if self._leaks and self._child else observation

    def _in_setting(self, cell: CellId, setting: Setting) -> Observation:
        """Run a cell in fresh processes after the cases of a setting, until it fails or all runs are done."""
        for left in reversed(range(setting.runs)):
            self._drop()
            self._child = self._fresh()
            if setting.after and not isinstance(self._child.ask(precede_request(setting.after), self._timeout), dict):
                self._drop()
            observation = self._observe(cell)
            if observation.status.is_failure or not left:
                return observation
        raise ValueError(f"{setting.runs} runs of {cell}; expected 1 or more")

    def _observe(self, cell: CellId) -> Observation:
        parts: list[Observation] = []
        first: int | None = 0
        while first is not None:
            part, first = self._attempt(cell, first)
            parts.append(part)
            left = len(self._work.case_ids(cell)) - first if first is not None else 0
            if left <= 0 or deaths(parts) >= DEATHS_PER_CELL:
                return merge(parts, left=max(left, 0))
        return merge(parts, left=0)

    def _with_kernels(self, observation: Observation) -> Observation:
        """Return a failing cell's observation with the operators that ran in its first mismatching case.

        The child that found the failure runs the case once more. If the child dies, no operators are added. A case that
        died on the device side does not run there again: on the routes ``_BY_CPU``, where the device side usually calls
        the same operators as CPU, its CPU side runs instead.
        """
        failure = next((f for f in observation.failures if f.mismatches), None)
        on_cpu = observation.status is not Status.FAIL
        if on_cpu and observation.route in _BY_CPU:
            failure = next((f for f in observation.failures if f.death and f.death.phase == "device"), None)
        elif on_cpu:
            failure = None
        if failure is None:
            return observation
        calls = self._kernels(observation.cell, failure.case, on_cpu=on_cpu)
        found = replace(failure, calls=calls)
        return replace(observation, failures=tuple(found if f is failure else f for f in observation.failures))

    def _kernels(self, cell: CellId, case: str, *, on_cpu: bool) -> tuple[str, ...]:
        """Return the operators that run in a case, () if the child dies or hangs."""
        self._child = self._child or self._fresh()
        index = self._work.case_ids(cell).index(case)
        self._children.progress.note(index, "")
        reply = self._child.ask(kernels_request(cell, index, on_cpu=on_cpu), self._limit(cell))
        if not isinstance(reply, dict):
            self._drop()
            return ()
        if reply["late"]:
            self._drop()  # the next cell must not meet the error
        return tuple(reply["kernels"])

    def close(self) -> None:
        """End the child and the spare children."""
        self._drop()
        self._children.close()

    def gate(self) -> Gate:
        """Try the primitives of the bring-up gate, in children. Then do without the broken ones.

        Unless a primitive that all cells need is broken, also ask the device for which dtypes it keeps subnormal
        numbers.
        """
        bringing_up = BringUp(self._work, self._children, self._fresh, self._timeout)
        failure, limits = bringing_up.primitives()
        if failure:
            return Gate(failure)
        self.without(tuple(limits))
        self.count_on_subnormals(bringing_up.subnormals())
        self._child = bringing_up.child
        return Gate(None, limits, self._subnormals)

    def without(self, primitives: Sequence[str]) -> None:
        """Do without these primitives in all children from now on."""
        self._without = tuple(primitives)

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        """In all children from now on, expect the device to keep the subnormal numbers of these dtypes."""
        self._subnormals = tuple(dtypes)

    def _fresh(self) -> Child:
        child = self._children.fresh()
        if self._without:
            child.ask(without_request(self._without), self._timeout)
        if self._subnormals:
            child.ask(subnormals_request(self._subnormals), self._timeout)
        return child

    def _limit(self, cell: CellId) -> float:
        """Return the seconds that a cell may take."""
        return self._timeout * (SCENARIO_TIMES if cell.is_scenario else 1)

    def _attempt(self, cell: CellId, first: int) -> tuple[Observation, int | None]:
        """Run a cell's cases from index ``first``. Return the observation, and the index to continue at, or None.

        The index is that of the first case to run in a fresh child.
        """
        self._child = self._child or self._fresh()
        self._children.progress.note(first, "")
        started = time.perf_counter_ns()
        reply = self._child.ask(Stretch(cell, first).request(), self._limit(cell))
        wall = time.perf_counter_ns() - started
        if isinstance(reply, dict):
            observation = self._charged(reply, Stretch(cell, first, reply["go_on"]))
            observation = self._repeated(observation, first, wall)
            if reply["go_on"] is not None:
                self._drop()  # CPU's call may have damaged the child's memory, or a case has lost the device
            elif self._child:  # an error of late work has ended the child
                self._lived.append((Stretch(cell, first), wall / 1e9))
            return observation, reply["go_on"]
        return self._after_death(cell, first, reply, wall)

    def _charged(self, reply: dict[str, Any], ran: Stretch) -> Observation:
        """Return the observation of a stretch in which the cases that caused errors of late work have these errors."""
        observation, ids = Observation.from_json(reply["observation"]), self._work.case_ids(ran.cell)
        if not self._late_errors.suspects(observation, reply["late"], ids[ran.first]):
            return observation
        self._drop()  # some devices raise an error again until their process ends
        settled = self._alone.reply(ran, settled=True)
        found = Observation.from_json(settled["observation"]) if settled else None
        return self._late_errors.charged(observation, reply["late"], found, ids[(ran.stop or len(ids)) - 1])

    def _repeated(self, observation: Observation, first: int, wall: int) -> Observation:
        """Return an observation with the result of repeating its first case that differs, in fresh processes."""
        failure = next((f for f in observation.failures if f.mismatches), None)
        if self._failures is None or failure is None:
            return observation
        cell, check = observation.cell, failure.check
        index = self._work.case_ids(cell).index(failure.case)
        before = [*self._lived, *([(Stretch(cell, first, index), wall / 1e9)] if index > first else [])]
        case, signature = Stretch(cell, index, index + 1), (cell.overload, check)
        found = self._failures.of(signature, lambda order: self._alone.differs(order, check), case, before)
        record = found.record(tuple(map(self._name, found.after)))
        told = tuple(replace(f, repetition=record) if f is failure else f for f in observation.failures)
        return replace(observation, failures=told)

    def _after_death(self, cell: CellId, first: int, how: ChildDeath | Hang, wall: int) -> tuple[Observation, int]:
        lived = self._lived
        self._drop()
        index, phase = self._children.progress.read()
        if index > first:
            lived = [*lived, (Stretch(cell, first, index), wall / 1e9)]
        script = self._children.progress.script()
        end = End(how, self._work.case_ids(cell)[index], phase, index - first + 1, wall, script)
        route = self._work.route(cell)
        tries = REFERENCES if isinstance(how, ChildDeath) else 1
        alone = self._reference(cell, index, tries) if phase and not end.broken else _Reference.SOUND
        if alone is _Reference.DIES:
            return self._with_earlier(reference_death(cell, route, end), Stretch(cell, first, index), wall), index + 1
        observation = death(cell, route, end, self._work.arguments(cell, index))
        if observation.status is Status.CRASH:
            signature = (cell.overload, observation.signal, phase)
            finding = self._inquiry.of(signature, Stretch(cell, index, index + 1), lived)
            by_chance = ("flaky", "ordered") if route in _BY_CPU else ("flaky",)
            if alone is _Reference.UNSOUND and finding.kind in by_chance:
                ended = unsound_reference(cell, route, end)
                return self._with_earlier(ended, Stretch(cell, first, index), wall), index + 1
            observation = told(observation, finding, self._name(finding.after))
            case = Stretch(cell, index, index + 1)
            said = self._inquiry.stack(finding, case, self._alone.crash, CrashLog(""))
            observation = with_stack(observation, said.stack, self._work.operators(said.calls))
        return observation, index + 1

    def _with_earlier(self, death: Observation, ran: Stretch, wall: int) -> Observation:
        """Run the cases before a death again, and merge their observation with the death's.

        ``death`` is not the device's fault, and ``ran`` are the cases that its process ran before. The process died
        before it reported them. A failure among them must not be lost, because the cell might pass without it.
        """
        if ran.first == ran.stop:
            return death
        reply = self._alone.reply(ran)
        if reply is None:
            return death
        earlier = self._repeated(self._charged(reply, ran), ran.first, wall)
        return merge([earlier, replace(death, cases=1)], left=0)

    def _drop(self) -> None:
        if self._child:
            self._child.close()
            self._child = None
        self._lived = []
        if self._leaks:
            self._leaks.forget()

    def _reference(self, cell: CellId, index: int, tries: int) -> _Reference:
        """Run only the CPU side of a case in up to ``tries`` fresh children. Return the result.

        If the CPU side dies, the death is not the device's fault. If CPU reads or writes past its arguments, a death by
        chance is not the device's fault either, because it depends on the bytes there.
        """
        found = _Reference.SOUND
        for left in reversed(range(tries)):
            child = self._fresh()
            reply = child.ask(reference_request(cell, index), self._limit(cell))
            if not isinstance(reply, dict):
                child.close()
                return found if broken(reply) else _Reference.DIES
            found = found if reply["sound"] else _Reference.UNSOUND
            if left or found is _Reference.UNSOUND:
                child.close()
            else:
                self._child = child  # it has only run the CPU side, so it can run the next case
        return found

    def _case_by_case(self, stretch: Stretch) -> list[Stretch]:
        stop = stretch.stop if stretch.stop is not None else len(self._work.case_ids(stretch.cell))
        return [Stretch(stretch.cell, i, i + 1) for i in range(stretch.first, stop)]

    def _name(self, stretch: Stretch | None) -> str:
        """Return the id of the case or the cell of a stretch."""
        if stretch is None:
            return ""
        one = stretch.stop == stretch.first + 1
        return self._work.case_ids(stretch.cell)[stretch.first] if one else str(stretch.cell)
