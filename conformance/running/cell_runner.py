"""A runner of a plan's cells in the current process, which judges each case and adds up an observation of the cell."""

from __future__ import annotations

import gc
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from conformance import contexts
from conformance.contexts import Context
from conformance.contexts.compiled import Compiled
from conformance.inventory import call_of
from conformance.judging import boundary, bringup, facts, programs, subnormals
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.tolerances import criteria_of
from conformance.judging.twins import Twins
from conformance.judging.views import poison
from conformance.plan import scaled
from conformance.plan.arguments import placed_arguments
from conformance.plan.case import Case
from conformance.plan.plan import Plan
from conformance.records import FAILURES_KEPT, Boundary, CaseFailure, Lacking, Observation, PlacedArgument
from conformance.running.late_errors import late_error
from conformance.running.progress import Progress
from conformance.running.protocol import Tried
from conformance.scenarios import catalogue, running_script
from conformance.support import host_heap
from conformance.torch_versions import print_stacks_of_deaths, settle_threads
from conformance.torch_versions.compilers import load_decompositions
from conformance.vocabulary import CellId, Status

# Seconds for the search for the sizes at which a case fails. Without a limit, its many calls could exceed a timeout.
_BOUNDARY_S = 10.0


class CellRunner:
    """A runner of the cells of one backend's plan. :class:`Work` says which methods are called in a child."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._twins = Twins(plan.corpus.value)
        self._judge: tuple[tuple[str, Context], Judge] | None = None
        self._settles = False
        self._broken: tuple[str, ...] = ()  # primitives

    def prepare(self) -> None:
        """Load what every child needs, before the first child is forked. Does not touch the device."""
        self.plan.load()
        poison(1, "bool").clone()  # the first operator call of a process initializes torch
        compiled = [Compiled.name] if any(catalogue.find(c.overload).compiles for c in self.plan.scenarios()) else []
        for name in [*self.plan.contexts(), *compiled]:
            contexts.of(name).load()

    def prepare_for_doubts(self) -> None:
        """Import the modules of torch's decompositions, which a child calls when it first doubts CPU's result."""
        load_decompositions()

    def try_primitive(self, index: int) -> str:
        """Return what is wrong with a primitive that comparisons need, "" if nothing is. Call this in a child."""
        return bringup.failing(self.plan.backend, index)

    def without(self, primitives: Sequence[str]) -> None:
        """From now on, do without these broken primitives in this process."""
        bringup.without(self.plan.backend, primitives)
        self._broken = tuple(primitives)

    def subnormal_dtypes(self) -> tuple[str, ...]:
        """Return the dtypes for which the device is asked whether it keeps subnormal numbers."""
        return subnormals.asked(self.plan.backend)

    def keeps_subnormals(self, dtype: str) -> bool:
        """Return whether the device keeps the subnormal numbers of a dtype. Call this in a child."""
        return subnormals.keeps(self.plan.backend, dtype)

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        """From now on, expect the device to keep the subnormal numbers of these dtypes."""
        self.plan.backend.subnormals = tuple(dtypes)

    def print_stacks(self) -> None:
        """Have torch print this process's native stacks if a signal kills it."""
        print_stacks_of_deaths()

    def settle(self) -> dict[str, str] | None:
        """Wait for all work of the device. Return the error (type, message) that this raises, None if there is none.

        Also return None if a case has lost the device.
        """
        if self._has_lost_device:
            return None
        met = self._judge[1].take_late_error() if self._judge else None
        return facts.error(met or self.plan.backend.late_error())

    def settle_each_case(self) -> None:
        """From now on, wait for all work of the device after each call and each case."""
        self._settles = True
        self.plan.backend.read_back_after_calls()

    def primitives(self) -> list[Tried]:
        """Return the primitives of the bring-up gate, in the order in which they are tried."""
        texts = enumerate(zip(bringup.GATE, bringup.names(), strict=True))
        return [Tried(p.name, text, bringup.blocks(self.plan.backend, i)) for i, (p, text) in texts]

    def needs(self, cell: CellId, primitives: Sequence[str]) -> str:
        """Return the first of these primitives that the cell needs, or that each of its cases needs; "" if none is."""
        needed = bringup.needed(cell, self.route(cell), primitives)
        return needed or bringup.needed_by_each(cell, self.plan.cases, primitives)

    def case_ids(self, cell: CellId) -> list[str]:
        """Return the ids of a cell's cases, in the order in which they run."""
        return self.plan.case_ids(cell)

    def arguments(self, cell: CellId, index: int) -> tuple[PlacedArgument, ...]:
        """Return the arguments of one of the cell's cases."""
        return () if cell.is_scenario else placed_arguments(self.plan.cases(cell)[index])

    def route(self, cell: CellId) -> str:
        """Return the route of the cell's overload."""
        return self.plan.route(cell)

    def operators(self, calls: Sequence[str]) -> tuple[str, ...]:
        """Return the operators of overloads from a native stack, e.g. ``fill__Scalar``, without unknown overloads."""
        named = {overload.replace(".", "_"): overload.partition(".")[0] for overload in self.plan.inventory}
        return tuple(dict.fromkeys(named[call] for call in calls if call in named))

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        """Run the cell's cases from index ``first`` up to ``stop``, in this process. Errors of ops are not raised.

        Return the observation and the index at which to continue in a fresh process. The index is None unless CPU's
        call may have damaged this process, or a case has lost the device.
        """
        warnings.simplefilter("ignore")  # the warnings of ops (prototype dtypes, deprecations) are not judged
        gc.disable()  # collecting between cells is early enough, and saves a tenth of a cell's time
        try:
            return self._run(cell, first, progress, stop)
        finally:
            gc.enable()

    def _run(self, cell: CellId, first: int, progress: Progress, stop: int | None) -> tuple[Observation, int | None]:
        settle_threads()
        self.plan.backend.initialize()
        tally = _Tally(cell, self.route(cell))
        if cell.is_scenario:
            return self._run_scenario(cell, progress, tally), None
        judge = self._judge_of(cell)
        for index, case in enumerate(self.plan.cases(cell)[first:stop], start=first):
            self._run_case(judge, case, index, progress, tally)
            if tally.tainted or self._has_lost_device:
                return self._observation(tally), index + 1
        return self._observation(tally), None

    def _observation(self, tally: _Tally) -> Observation:
        observation = tally.observation()
        partial = observation.status is Status.PASS and (tally.left_cases or not self.plan.takes_all(tally.cell))
        return replace(observation, partial=partial)

    def _run_scenario(self, cell: CellId, progress: Progress, tally: _Tally) -> Observation:
        scenario = catalogue.find(cell.overload)
        (case,) = self.plan.case_ids(cell)
        with running_script.followed_by(progress.note_script):
            tally.add(lambda: case, lambda: programs.judge(scenario, self.plan.backend, partial(progress.note, 0)))
        return tally.observation()

    def reference(self, cell: CellId, index: int) -> bool:
        """Run only the CPU side of one case, three times with different bytes in freed memory.

        Return whether the results are the same each time. A scenario runs once, and the result is True.
        """
        if cell.is_scenario:
            catalogue.find(cell.overload).run("cpu")
            return True
        case = self.plan.cases(cell)[index]
        sound = True
        for _ in range(3):
            sound &= self._judge_of(cell).reference_is_sound(case)
            host_heap.shake()
        return sound

    def checks(self, cell: CellId, index: int) -> list[str]:
        """Judge one case as :meth:`run` does. Return the checks that fail."""
        warnings.simplefilter("ignore")
        self.plan.backend.initialize()
        if cell.is_scenario:
            result = programs.judge(catalogue.find(cell.overload), self.plan.backend, _ignore)
        else:
            result = self._judge_of(cell).judge(self.plan.cases(cell)[index])
        return [m.check.value for m in result.mismatches]

    def precede(self, ids: Sequence[str]) -> None:
        """Run these cases, and all cases of these cells. Their results are discarded."""
        warnings.simplefilter("ignore")
        self.plan.backend.initialize()
        for found in filter(None, map(CellId.parse, (id_.partition("#")[0] for id_ in ids))):
            if found.is_scenario:
                programs.judge(catalogue.find(found.overload), self.plan.backend, _ignore)
                continue
            for case in self.plan.all_cases(found):
                if case.id in ids or str(found) in ids:
                    self._judge_of(found).judge(case)

    def kernels(self, cell: CellId, index: int, *, on_cpu: bool) -> list[str]:
        """Run one case once more, on the device or on CPU. Return the operators that ran there, in order."""
        warnings.simplefilter("ignore")
        self.plan.backend.initialize()
        if cell.is_scenario:
            return programs.operators(catalogue.find(cell.overload), "cpu" if on_cpu else self.plan.backend.device)
        return self._judge_of(cell).kernels(self.plan.cases(cell)[index], on_cpu=on_cpu)

    def _run_case(self, judge: Judge, case: Case, index: int, progress: Progress, tally: _Tally) -> None:
        def told(failure: CaseFailure) -> CaseFailure:
            found = replace(failure, arguments=placed_arguments(case))
            searched = tally.is_first and not judge.has_lost_device
            return replace(found, boundary=_boundary(judge, case)) if searched else found

        if needed := bringup.needed_by(case, self._broken):
            tally.leave(f"the arguments need {needed}, which is broken")
            return
        tally.add(lambda: case.id, lambda: judge.judge(case, partial(progress.note, index)), told)
        if self._settles and (late := self.settle()):
            tally.failed(CaseFailure(case.id, (late_error(late),), placed_arguments(case)))

    @property
    def _has_lost_device(self) -> bool:
        """Whether a case of this process's latest cell has lost the device."""
        return self._judge is not None and self._judge[1].has_lost_device

    def _judge_of(self, cell: CellId) -> Judge:
        overload, context = cell.overload, contexts.of(cell.layout)
        if self._judge is None or self._judge[0] != (overload, context):
            route = context.route(self.plan.inventory[overload].route)
            criteria = criteria_of(overload, subnormals.kept(self.plan.backend))
            criteria = replace(criteria, facts=context.facts(criteria.facts, overload))
            judge = Judge(self._twins, self.plan.backend, call_of(overload), route, criteria, self.plan.seed, context)
            self._judge = ((overload, context), judge)
        return self._judge[1]


def _ignore(phase: str) -> None:
    """No-op callback."""


def _boundary(judge: Judge, case: Case) -> Boundary | None:
    """Return the sizes at which a case of a generated size fails; None for another case."""
    largest = scaled.size(case)
    if largest < 2:
        return None

    def fails(n: int) -> bool:
        try:
            return not judge.has_lost_device and judge.differs(scaled.at_size(case, n))
        except Exception:  # noqa: BLE001 - a size at which the arguments do not fit
            return False

    end = time.monotonic() + _BOUNDARY_S
    found = boundary.search(fails, largest, lambda: time.monotonic() < end)
    return None if judge.has_lost_device else found


class _Tally:
    """The results of one cell's cases, added up to an observation."""

    def __init__(self, cell: CellId, route: str) -> None:
        self.cell = cell
        self.route = route
        self.compared = 0
        self.raw_ns = 0
        self.cases = 0
        self.tainted = False
        self.left_cases = False  # whether cases did not run because they need a broken primitive
        self.reason = ""  # the reason for which the first skipped case was not compared
        self.lacking: Counter[str] = Counter()  # skipped cases, by the overload that a native kernel lacks
        self.left_out = ""  # the part of a scenario that could not be compared
        self._failures: list[CaseFailure] = []
        self._failing = 0
        self._broken = False
        self._wall = time.perf_counter_ns()
        self._cpu = time.process_time_ns()

    @property
    def is_first(self) -> bool:
        """Whether no case has failed yet."""
        return not self._failing

    def add(
        self,
        named: Callable[[], str],
        judged: Callable[[], CaseResult],
        told: Callable[[CaseFailure], CaseFailure] = lambda f: f,
    ) -> None:
        """Judge a case and add its result.

        ``named`` returns the id of the case, and is called only for a failure. ``told`` returns a failure with more
        facts.
        """
        self.cases += 1
        try:
            result = judged()
        except Exception:  # noqa: BLE001  # the suite itself failed: record that, and run the next case
            self.broke(CaseFailure(named(), trouble=traceback.format_exc()))
            return
        self.raw_ns += result.raw_ns
        self.reason = self.reason or result.skipped
        self.left_out = self.left_out or result.left_out
        self.tainted |= result.tainted
        if result.skipped:
            self.lacking.update(filter(None, [result.lacks]))
            return
        self.compared += 1
        if result.mismatches:
            self.failed(told(CaseFailure(named(), tuple(result.mismatches))))

    def leave(self, why: str) -> None:
        """Add a case that cannot run."""
        self.cases += 1
        self.left_cases = True
        self.reason = self.reason or why

    def failed(self, failure: CaseFailure) -> None:
        self._failing += 1
        if len(self._failures) < FAILURES_KEPT:
            self._failures.append(failure)

    def broke(self, failure: CaseFailure) -> None:
        self._broken = True
        self.failed(failure)

    def observation(self) -> Observation:
        if self._broken:
            status = Status.ERROR
        elif self._failing:
            status = Status.FAIL
        else:
            status = Status.PASS if self.compared else Status.UNSUPPORTED
        return Observation(
            self.cell,
            self.route,
            status,
            cases=self.cases,
            failures=tuple(self._failures),
            reason=self.reason if status is Status.UNSUPPORTED else self.left_out,
            wall_ns=time.perf_counter_ns() - self._wall,
            cpu_ns=time.process_time_ns() - self._cpu,
            raw_ns=self.raw_ns,
            compared=self.compared,
            lacking=tuple(Lacking(*one) for one in sorted(self.lacking.items())),
        )
