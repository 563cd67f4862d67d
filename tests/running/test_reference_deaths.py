"""Deaths that the CPU reference may cause, and deaths by chance: the ones that count as the device's."""

from __future__ import annotations

import ctypes
import mmap

import pytest

from conformance.records import (
    Observation,
)
from conformance.running.progress import Progress
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Status
from tests.running.work import CELL, OTHER, Work, observe


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
    """Work whose CPU side dies the fourth time that it runs, counted over all processes, and at no other time."""

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
    """Work whose case dies in its first ``times`` runs, over all processes. ``sound``: CPU is sound in the case."""

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
    """Work that dies in the second case if its process ran the first one. CPU is not sound in the case."""

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
    """Work in which the cell OTHER leaves an error of late work."""

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
