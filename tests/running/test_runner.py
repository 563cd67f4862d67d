"""The runner: deaths are attributed to their case, and the remaining cases still run."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.records import (
    CaseFailure,
    Mismatch,
    Observation,
    PlacedArgument,
    Repeats,
    Repetition,
    Setting,
)
from conformance.running.isolation import Forking
from conformance.running.late_errors import late_error
from conformance.running.progress import Progress
from conformance.running.protocol import Tried
from conformance.running.runner import DEATHS_PER_CELL, Runner
from conformance.vocabulary import CellId, Check, Fact, Status
from tests.hangs import Hangs

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "expanded")
OTHER = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")


class Work:
    """Cases that do as their names say."""

    def __init__(self, *cases: str, route: str = "native") -> None:
        self._cases = cases
        self._route = route
        self.broken: dict[int, str] = {}
        self.lacking: tuple[str, ...] = ()
        self.flushes: dict[str, str] = {}  # dtypes with how a device answers that does not keep subnormal numbers
        self.kept: tuple[str, ...] = ()
        self.preceded: tuple[str, ...] = ()
        self.pending = ""  # an error of late work
        self.settles = False
        self.prepared_for_doubts = 0
        self.hangs: Hangs | None = None

    def case_ids(self, cell: CellId) -> list[str]:
        return [f"{cell}#{name}" for name in self._cases]

    def arguments(self, cell: CellId, index: int) -> tuple[PlacedArgument, ...]:
        return (PlacedArgument("self", text=self._cases[index]),)

    def route(self, cell: CellId) -> str:
        return self._route

    def reference(self, cell: CellId, index: int) -> bool:
        if self._cases[index] in ("cpu dies", "reference dies"):
            ctypes.string_at(0)
        return True

    def checks(self, cell: CellId, index: int) -> list[str]:
        observation, _ = self.run(cell, index, Progress(), index + 1)
        return [f.check for f in observation.failures]

    def precede(self, ids: Sequence[str]) -> None:
        self.preceded = tuple(ids)

    def kernels(self, cell: CellId, index: int, *, on_cpu: bool) -> list[str]:
        if self._cases[index] == "fails and dies again":
            ctypes.string_at(0)
        return ["clone on cpu"] if on_cpu else ["clone", "copy_"]

    def settle(self) -> dict[str, str] | None:
        late, self.pending = self.pending, ""
        return {"type": "RuntimeError", "message": late} if late else None

    def settle_each_case(self) -> None:
        self.settles = True

    def print_stacks(self) -> None:
        os.write(2, b"frame #3: fill() + 0x1 (0x7 in /x/libmine.so)\n")
        os.write(2, b"frame #4: at::_ops::fill__Scalar::call(x) + 0x1 (0x7 in /x/libother.so)\n")

    def operators(self, calls: Sequence[str]) -> tuple[str, ...]:
        return tuple({"fill__Scalar": "fill_"}[call] for call in calls)

    def prepare(self) -> None:
        """There is nothing to load."""

    def prepare_for_doubts(self) -> None:
        self.prepared_for_doubts += 1

    def try_primitive(self, index: int) -> str:
        if self.broken.get(index) == "dies":
            ctypes.string_at(0)
        return self.broken.get(index, "")

    def without(self, primitives: Sequence[str]) -> None:
        self.lacking = tuple(primitives)

    def subnormal_dtypes(self) -> tuple[str, ...]:
        return "float16", "float32", "float64"

    def keeps_subnormals(self, dtype: str) -> bool:
        if self.flushes.get(dtype) == "dies":
            ctypes.string_at(0)
        return dtype not in self.flushes

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        self.kept = tuple(dtypes)

    def needs(self, cell: CellId, primitives: Sequence[str]) -> str:
        return ""

    def primitives(self) -> list[Tried]:
        return [
            Tried("allocate", "allocate (memory)", True), Tried("conj", "conj (resolves)", False),
            Tried("neg", "neg (resolves)", False),
        ]  # fmt: skip

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        ran, failures = 0, []
        for index in range(first, len(self._cases) if stop is None else stop):
            what = self._cases[index]
            progress.note(index, "cpu" if what.startswith("cpu") else "device")
            if cell == CELL and what in ("dies", "cpu dies", "reference dies", "cpu dies of damage"):
                ctypes.string_at(0)
            if what == "hangs":
                assert self.hangs
                self.hangs.hang()
            if what == "breaks":
                raise ValueError(what)
            if what == "needs float64" and self.kept != ("float64",):
                ctypes.string_at(0)
            if what == "needs conj" and "conj" not in self.lacking:
                ctypes.string_at(0)
            ran += 1
            met, self.pending = self.pending, what if what.startswith("leaves an error") else ""
            if self.settles and (late := self.settle()):
                failures.append(CaseFailure(f"{cell}#{what}", (late_error(late),)))
            if met or what == "raises":
                error = {"type": "RuntimeError", "message": met or "its own"}
                facts = {"kind": Fact.ERRORS.value, "device": error, "cpu": None}
                failures.append(CaseFailure(f"{cell}#{what}", (Mismatch(Check.ERROR_PARITY, "", facts),)))
            if what.startswith("fails"):
                failures.append(CaseFailure(f"{cell}#{what}", (Mismatch(Check.VALUE, "result", {}),)))
            if what == "taints":
                return Observation(cell, "native", Status.PASS, ran, compared=ran), index + 1
        status = Status.FAIL if failures else Status.PASS
        return Observation(cell, "native", status, ran, tuple(failures), compared=ran), None


def observe(*cases: str, cell: CellId = CELL) -> Observation:
    runner = Runner(Work(*cases), 600)
    try:
        return runner.observe(cell)
    finally:
        runner.close()


def test_a_cell_with_passing_cases_passes() -> None:
    found = observe("ok", "ok")
    assert (found.status, found.cases, found.compared) == (Status.PASS, 2, 2)


def test_a_runner_that_is_closed_leaves_no_descriptor_open() -> None:
    observe("ok")  # the first one imports
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        observe("ok", "dies", "ok")
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_crash_names_its_case_and_the_later_cases_still_run() -> None:
    found = observe("ok", "dies", "ok", "ok")
    assert found.status is Status.CRASH
    assert found.signal == "SIGSEGV"
    assert [f.case for f in found.failures] == [f"{CELL}#dies"]
    assert [a.text for f in found.failures for a in f.arguments] == ["dies"]
    assert found.cases == 4


def test_a_crash_that_repeats_has_a_native_stack() -> None:
    (found,) = observe("dies").failures
    assert found.death
    assert found.death.stack == ("fill (libmine.so)", "at::_ops::fill__Scalar::call (libother.so)")
    assert found.death.operators == ("fill_",)
    assert "frame #" not in found.death.log


def test_only_the_first_failing_case_has_the_operators_that_ran() -> None:
    found = observe("ok", "fails", "fails too")
    assert [f.calls for f in found.failures] == [("clone", "copy_"), ()]


def test_a_failing_case_that_dies_when_it_is_repeated_stays_a_failure() -> None:
    found = observe("fails and dies again", "ok")
    assert (found.status, found.cases, found.signal) == (Status.FAIL, 2, "")
    assert found.failures[0].calls == ()


def test_no_case_of_a_native_cell_that_died_is_repeated() -> None:
    found = observe("fails", "dies")
    assert found.status is Status.CRASH
    assert not any(f.calls for f in found.failures)


@pytest.mark.parametrize("route", ["composite", "fallback"])
def test_a_composite_or_fallback_that_died_has_the_operators_of_cpu(route: str) -> None:
    runner = Runner(Work("ok", "dies", route=route), 600)
    found = runner.observe(CELL)
    runner.close()
    assert found.status is Status.CRASH
    assert [f.calls for f in found.failures] == [("clone on cpu",)]


def test_the_cell_after_a_crash_passes() -> None:
    runner = Runner(Work("dies"), 600)
    assert runner.observe(CELL).status is Status.CRASH
    assert runner.observe(OTHER).status is Status.PASS
    runner.close()


def test_a_cell_is_given_up_after_three_deaths_and_says_so() -> None:
    found = observe(*["dies"] * (DEATHS_PER_CELL + 2))
    assert len(found.failures) == DEATHS_PER_CELL
    assert "2 more cases not run after 3 deaths" in found.reason


def test_the_cases_after_one_that_may_have_damaged_memory_still_run() -> None:
    found = observe("ok", "taints", "ok", "taints", "taints", "taints", "ok")
    assert (found.status, found.cases) == (Status.PASS, 7)


def test_a_hang_is_a_timeout_with_its_python_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work("hangs")
    work.hangs = Hangs(tmp_path, monkeypatch)
    runner = Runner(work, 0.5)
    found = runner.observe(CELL)
    runner.close()
    assert found.status is Status.TIMEOUT
    death = found.failures[0].death
    assert death
    assert death.seconds == 0.5
    assert [frame.rpartition(" ")[2] for frame in death.python] == ["hang", "run"]


@pytest.mark.parametrize("case", ["cpu dies", "reference dies"])
def test_a_case_whose_cpu_side_dies_alone_is_unsupported(case: str) -> None:
    found = observe(case)
    assert found.status is Status.UNSUPPORTED
    assert "the CPU reference of" in found.reason


def test_a_failure_before_a_case_whose_cpu_side_dies_is_not_lost() -> None:
    found = observe("fails", "cpu dies", "ok")
    assert (found.status, found.cases, found.compared) == (Status.FAIL, 3, 2)
    assert [f.case for f in found.failures] == [f"{CELL}#fails"]
    assert "the CPU reference of" in found.reason


class DyingNowAndThen(Work):
    """CPU's side dies the fourth time that it runs, and in no process before."""

    def __init__(self, *cases: str) -> None:
        super().__init__(*cases)
        self._calls = mmap.mmap(-1, 1)  # shared with the children

    def reference(self, cell: CellId, index: int) -> bool:
        self._calls[0] += 1
        if self._calls[0] == 4:
            ctypes.string_at(0)
        return True


@pytest.mark.parametrize("case", ["cpu dies of damage", "dies"])
def test_a_case_whose_cpu_side_dies_alone_now_and_then_is_unsupported(case: str) -> None:
    runner = Runner(DyingNowAndThen(case), 600)
    try:
        assert runner.observe(CELL).status is Status.UNSUPPORTED
    finally:
        runner.close()


class DyingOnce(Work):
    """Dies in its first ``times`` runs in all processes, in a case that CPU is sound in or not."""

    def __init__(self, times: int, sound: bool) -> None:
        super().__init__("ok", "dies", "ok")
        self._times = times
        self._sound = sound
        self._deaths = mmap.mmap(-1, 1)  # shared with the children

    def reference(self, cell: CellId, index: int) -> bool:
        return self._sound

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        runs = range(first, len(self._cases) if stop is None else stop)
        if 1 in runs and self._deaths[0] < self._times:
            self._deaths[0] += 1
            return super().run(cell, first, progress, stop)
        return super().run(OTHER, first, progress, stop)


@pytest.mark.parametrize(
    ("times", "sound", "status"),
    [(1, False, Status.PASS), (1, True, Status.CRASH), (99, False, Status.CRASH), (99, True, Status.CRASH)],
)
def test_a_death_by_chance_is_none_of_the_device_where_cpu_reads_past_its_arguments(
    times: int, sound: bool, status: Status
) -> None:
    runner = Runner(DyingOnce(times, sound), 600)
    try:
        found = runner.observe(CELL)
    finally:
        runner.close()
    assert found.status is status
    assert found.cases == 3
    assert ("reads memory that nobody wrote" in found.reason) == (status is Status.PASS)
    assert found.signal == "SIGSEGV"


class DyingAfterAnother(Work):
    """Dies in the second case of a process that ran the first one, in a case that CPU is not sound in."""

    def __init__(self, route: str) -> None:
        super().__init__("ok", "other", "ok", route=route)
        self._ran: set[int] = set()

    def reference(self, cell: CellId, index: int) -> bool:
        return False

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        for index in range(first, len(self._cases) if stop is None else stop):
            progress.note(index, "device")
            if index == 1 and 0 in self._ran:
                ctypes.string_at(0)
            self._ran.add(index)
        return super().run(OTHER, first, progress, stop)


@pytest.mark.parametrize(
    ("route", "status"), [("fallback", Status.PASS), ("composite", Status.PASS), ("native", Status.CRASH)]
)
def test_a_death_after_another_case_is_none_of_the_device_where_a_kernel_of_cpu_reads_past_its_arguments(
    route: str, status: Status
) -> None:
    runner = Runner(DyingAfterAnother(route), 600)
    try:
        found = runner.observe(CELL)
    finally:
        runner.close()
    assert found.status is status
    assert ("reads memory that nobody wrote" in found.reason) == (status is Status.PASS)


class LeavingAnError(DyingOnce):
    """The cell OTHER leaves an error of late work."""

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        found = super().run(cell, first, progress, stop)
        self.pending = "late" if cell == OTHER else ""
        return found


def test_a_cell_whose_process_ended_over_a_late_error_did_not_run_before_a_later_death() -> None:
    runner = Runner(LeavingAnError(times=3, sound=True), 600)
    try:
        runner.observe(OTHER)
        (failure,) = runner.observe(CELL).failures
    finally:
        runner.close()
    assert failure.death
    assert failure.death.finding
    assert failure.death.finding.before == 1  # the first case of its own cell


def test_a_death_on_the_cpu_side_that_does_not_repeat_alone_is_a_crash() -> None:
    found = observe("ok", "cpu dies of damage")
    assert found.status is Status.CRASH
    death = found.failures[0].death
    assert death
    assert (death.signal, death.phase) == ("SIGSEGV", "cpu")


def test_an_exception_of_the_suite_is_an_error_and_no_crash() -> None:
    assert observe("breaks").status is Status.ERROR


class Remembering(Work):
    """Its case fails after "a", which is also the cell OTHER, and in each ``every``-th run of all processes."""

    def __init__(self, counter: Path, every: int = 0) -> None:
        super().__init__("x")
        self._counter = counter
        self._every = every

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        with self._counter.open("a") as file:
            file.write("x")
        strikes = self._every and self._counter.stat().st_size % self._every == 0
        self._cases = ("fails",) if "a" in self.preceded or strikes else ("ok",)
        found, _ = super().run(cell, first, progress, stop)
        failures = tuple(replace(failure, case=f"{cell}#x") for failure in found.failures)
        self._cases = ("x",)
        self.preceded = (*self.preceded, "a") if cell == OTHER else self.preceded
        return replace(found, failures=failures), None


def test_a_cell_runs_after_the_cases_of_its_setting(tmp_path: Path) -> None:
    runner = Runner(Remembering(tmp_path / "n"), 600, setting=Setting(after=("a",)))
    assert runner.observe(CELL).status is Status.FAIL
    runner.close()
    runner = Runner(Remembering(tmp_path / "n"), 600, setting=Setting(after=("b",)))
    assert runner.observe(CELL).status is Status.PASS
    runner.close()


@pytest.mark.parametrize(("runs", "status"), [(2, Status.PASS), (3, Status.FAIL), (9, Status.FAIL)])
def test_a_cell_runs_in_fresh_processes_until_it_fails(tmp_path: Path, runs: int, status: Status) -> None:
    runner = Runner(Remembering(tmp_path / "n", every=3), 600, setting=Setting(runs=runs))
    assert runner.observe(CELL).status is status
    runner.close()
    assert (tmp_path / "n").stat().st_size == min(runs, 3)


def test_a_difference_is_repeated_alone_and_after_what_its_process_ran(tmp_path: Path) -> None:
    runner = Runner(Remembering(tmp_path / "n"), 600, failures_s=10_000)
    runner.observe(OTHER)
    (failure,) = runner.observe(CELL).failures
    runner.close()
    assert failure.repetition == Repetition(Repeats.ORDERED, (0, 5), (f"{OTHER}#x",), (5, 5))


def test_no_difference_is_repeated_without_time_for_it(tmp_path: Path) -> None:
    runner = Runner(Remembering(tmp_path / "n"), 600)
    runner.observe(OTHER)
    (failure,) = runner.observe(CELL).failures
    runner.close()
    assert failure.repetition is None


# Errors of late work -------------------------------------------------------------------------------------------------


def charged(*cases: str) -> list[str]:
    return [f.case.partition("#")[2] for f in observe(*cases).failures]


def test_an_error_of_late_work_is_charged_to_the_case_that_caused_it() -> None:
    assert charged("ok", "leaves an error", "meets it", "ok") == ["leaves an error"]
    assert charged("leaves an error", "leaves an error too", "ok") == ["leaves an error", "leaves an error too"]


def test_an_error_that_only_the_end_of_the_cell_shows_is_charged_to_its_case() -> None:
    (failure,) = observe("ok", "leaves an error").failures
    assert failure.mismatches == (late_error({"type": "RuntimeError", "message": "leaves an error"}),)


def test_no_cell_meets_the_late_error_of_another() -> None:
    runner = Runner(Work("leaves an error"), 600)
    try:
        found = [runner.observe(CELL), runner.observe(OTHER)]
    finally:
        runner.close()
    assert [f.cell for f in found for _ in f.failures] == [CELL, OTHER]
    assert [len(f.failures) for f in found] == [1, 1]


def test_a_case_with_an_error_of_its_own_keeps_it() -> None:
    assert charged("ok", "raises", "ok") == ["raises"]
    assert charged("fails", "ok", "raises") == ["fails", "raises"]


def test_a_run_that_forks_many_children_loads_once_what_each_would_load() -> None:
    work = Work("passes")
    children = Forking(work)
    asked = []
    for _ in range(20):
        asked.append(work.prepared_for_doubts)
        children.fresh().close()
    assert (asked[1], asked[-1], work.prepared_for_doubts) == (0, 1, 1)
