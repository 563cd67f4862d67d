"""The runner: deaths are attributed to their case, and the remaining cases still run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.records import (
    Observation,
    Repeats,
    Repetition,
    Setting,
)
from conformance.running.isolation import Forking
from conformance.running.late_errors import late_error
from conformance.running.progress import Progress
from conformance.running.runner import DEATHS_PER_CELL, Runner
from conformance.vocabulary import CellId, Status
from tests.hangs import Hangs
from tests.running.work import CELL, OTHER, Work, observe


def test_a_cell_with_passing_cases_passes() -> None:
    found = observe("ok", "ok")
    assert (found.status, found.cases, found.compared) == (Status.PASS, 2, 2)


def test_a_runner_that_is_closed_leaves_no_descriptor_open() -> None:
    observe("ok")  # the first run imports modules
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


def test_an_exception_of_the_suite_is_an_error_and_no_crash() -> None:
    assert observe("breaks").status is Status.ERROR


class Remembering(Work):
    """Work whose case fails after "a" or the cell OTHER, and in each ``every``-th run, counted over all processes."""

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
