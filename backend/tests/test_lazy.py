"""Recorded work: the driver's promises about steps, parts of them, and old values that waiting work still reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from driver_program import BEHAVIOURS, MODES, RACES, assert_passes, run, variables
from test_late import PROMISES as OF_LATE_WORK

SOURCE = Path(__file__).with_name("lazy_test.cpp")
PROMISES = re.findall(r"^RECORDED\((\w+)\)", SOURCE.read_text(), re.MULTILINE)
LAZY = {"REFNPU_LAZY": "1"}

# The promise that each fault of recorded work breaks.
BROKEN_BY = {
    "partial_run_donates": "waiting_work_reads_the_old_values_of_what_a_part_overwrites",
    "partial_run_keeps_first_bytes": "waiting_work_reads_the_old_values_of_what_a_part_overwrites",
    "partial_run_forgets_inputs": "a_copy_to_the_host_runs_what_it_needs_alone",
    "partial_run_misses_views": "what_is_written_through_a_view_is_needed",
    "partial_run_drops_rest": "a_copy_to_the_host_runs_what_it_needs_alone",
}


@pytest.mark.parametrize("mode", MODES)
def test_the_driver_keeps_every_promise_with_recorded_work(driver: Path, mode: str) -> None:
    for promise in [*PROMISES, *BEHAVIOURS, *OF_LATE_WORK]:
        assert_passes(driver, promise, mode, **LAZY)


@pytest.mark.parametrize("mode", MODES)
def test_the_driver_has_no_data_race_with_recorded_work(race_checked: Path, mode: str) -> None:
    for promise in [*PROMISES, *BEHAVIOURS, *OF_LATE_WORK]:
        done = run(race_checked, promise, **variables(mode), **LAZY, **RACES)
        assert done.returncode == 0, f"{promise}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("fault", BROKEN_BY)
def test_each_fault_of_recorded_work_breaks_its_promise(driver: Path, fault: str) -> None:
    lazy = {"REFNPU_DEVICES": "3", **LAZY}
    assert run(driver, BROKEN_BY[fault], **lazy, REFNPU_FAULT="").returncode == 0
    done = run(driver, BROKEN_BY[fault], **lazy, REFNPU_FAULT=fault)
    assert 0 < done.returncode < 60, done.stdout + done.stderr
    assert "expected" in done.stdout


@pytest.mark.parametrize("fault", BROKEN_BY)
def test_faults_of_recorded_work_are_asleep_where_none_is_recorded(driver: Path, fault: str) -> None:
    done = run(
        driver,
        "a_random_program_has_the_result_of_its_data_flow",
        REFNPU_DEVICES="3",
        REFNPU_LATE="1",
        REFNPU_FAULT=fault,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_mode_in_the_environment_is_refused(driver: Path) -> None:
    done = run(driver, "the_environment_is_what_was_asked", REFNPU_LAZY="yes")
    assert "REFNPU_LAZY='yes': expected a whole number from 0 to 1" in done.stdout


def test_the_promises_of_recorded_work_are_found_in_their_source() -> None:
    assert len(PROMISES) > 10
