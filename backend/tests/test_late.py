"""Late work: the driver's promises about order, lifetimes, copies, errors and the end of a process."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from driver_program import BEHAVIOURS, MODES, RACES, assert_passes, run, variables

SOURCES = sorted(Path(__file__).parent.glob("late*_test.cpp"))
# These need another environment, and have tests of their own below.
APART = {
    "a_pool_reuses_at_once_what_no_queued_work_uses": {"REFNPU_ALLOCATOR": "pool"},
    "damage_of_a_block_freed_late_is_told_by_a_synchronization": {"REFNPU_ALLOCATOR": "redzone"},
    "a_blocking_launch_returns_its_own_error": {"REFNPU_LAUNCH_BLOCKING": "1"},
}
ALL = [name for source in SOURCES for name in re.findall(r"^PRINTS\((\w+)\)", source.read_text(), re.MULTILINE)]
PROMISES = [name for name in ALL if name not in APART]
LATE = {"REFNPU_LATE": "1", "REFNPU_DELAY_US": "random:1"}

# The promise that each fault of the driver breaks. Those of copies between devices are in conformance/hazards.
BROKEN_BY = {
    "stage_not_taken": "a_pageable_source_may_be_changed_at_once",
    "copy_to_host_not_awaited": "copies_to_the_host_wait_unless_it_is_pinned",
    "scalar_to_host_not_awaited": "copies_to_the_host_wait_unless_it_is_pinned",
    "pinned_copy_not_awaited": "copies_to_the_host_wait_unless_it_is_pinned",
    "freed_at_once": "a_freed_block_lives_until_its_work_is_done",
    "recorded_streams_forgotten": "a_freed_block_lives_until_the_work_of_recorded_streams_is_done",
    "pinned_freed_at_once": "freed_pinned_memory_lives_until_its_copies_are_done",
    "wait_event_ignored": "a_stream_waits_for_an_event_of_another",
    "wait_event_of_other_device_ignored": "devices_wait_for_events_of_each_other",
    "event_keeps_first_recording": "an_event_recorded_again_moves_for_those_who_ask_later",
    "event_recorded_on_default_stream": "work_is_pending_until_it_is_awaited",
    "event_reached_early": "work_is_pending_until_it_is_awaited",
    "event_query_says_done": "work_is_pending_until_it_is_awaited",
    "event_not_awaited": "work_is_pending_until_it_is_awaited",
    "stream_query_says_done": "work_is_pending_until_it_is_awaited",
    "stream_not_awaited": "streams_run_beside_each_other",
    "device_waits_for_default_stream": "a_device_is_synchronized_with_all_its_streams",
    "launch_arguments_overwritten": "work_runs_in_the_order_of_its_stream",
    "work_overtakes": "a_stream_made_synchronous_first_ends_its_queue",
    "late_error_lost": "a_late_error_is_told_once_with_the_kernel_and_the_call",
    "late_error_repeated": "a_late_error_is_told_once_with_the_kernel_and_the_call",
}


@pytest.mark.parametrize("mode", MODES)
def test_the_driver_keeps_every_promise_with_late_work(driver: Path, mode: str) -> None:
    for promise in [*PROMISES, *BEHAVIOURS]:
        assert_passes(driver, promise, mode, **LATE)


@pytest.mark.parametrize("promise", APART)
def test_late_work_keeps_the_promises_of_special_environments(driver: Path, promise: str) -> None:
    done = run(driver, promise, REFNPU_DEVICES="3", **LATE, **APART[promise])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_the_driver_has_no_data_race_with_late_work(race_checked: Path, mode: str) -> None:
    for promise in [*PROMISES, *BEHAVIOURS]:
        done = run(race_checked, promise, **variables(mode), **LATE, **RACES)
        assert done.returncode == 0, f"{promise}: {done.stdout}{done.stderr}"


def test_a_random_program_on_streams_is_right_under_20_schedules(driver: Path) -> None:
    for seed in range(20):
        done = run(
            driver, "a_random_program_has_the_result_of_its_data_flow", REFNPU_DEVICES="3", REFNPU_LATE="1",
            REFNPU_DELAY_US=f"random:{seed}",
        )  # fmt: skip
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("fault", BROKEN_BY)
def test_each_late_fault_breaks_its_promise(driver: Path, fault: str) -> None:
    # The delay is so long that the host usually asks first. On a busy machine it may not, so there are several tries.
    late = {"REFNPU_DEVICES": "3", "REFNPU_LATE": "1", "REFNPU_DELAY_US": "50000"}
    assert run(driver, BROKEN_BY[fault], **late | {"REFNPU_FAULT": ""}).returncode == 0
    for _ in range(5):
        done = run(driver, BROKEN_BY[fault], **late | {"REFNPU_FAULT": fault})
        if done.returncode:
            break
    assert 0 < done.returncode < 60, done.stdout + done.stderr
    assert "expected" in done.stdout


def test_the_promises_of_the_driver_are_found_in_its_sources() -> None:
    assert APART.keys() <= set(ALL)
    assert len(PROMISES) > 25


# Schedules ---------------------------------------------------------------------------------------------------------


def delays(driver: Path, delay: str) -> list[int]:
    return [int(text) for text in run(driver, "the_delays", REFNPU_DELAY_US=delay).stdout.split()]


def test_a_seed_gives_the_same_delays_in_each_process(driver: Path) -> None:
    first = delays(driver, "random:1")
    assert delays(driver, "random:1") == first != delays(driver, "random:2")
    assert first[:20] != first[20:40]  # of two streams
    assert 0 in first
    assert max(first) > 0
    assert set(delays(driver, "70")) == {70}
    assert set(delays(driver, "")) == {0}


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("REFNPU_LATE", "yes", "REFNPU_LATE='yes': expected a whole number from 0 to 1"),
        ("REFNPU_LAUNCH_BLOCKING", "2", "REFNPU_LAUNCH_BLOCKING='2': expected a whole number from 0 to 1"),
        (
            "REFNPU_DELAY_US",
            "1ms",
            "REFNPU_DELAY_US: delay '1ms': expected microseconds from 0 to 10000000, or",
        ),
    ],
)
def test_a_wrong_schedule_in_the_environment_is_refused(driver: Path, variable: str, value: str, said: str) -> None:
    done = run(driver, "the_environment_is_what_was_asked", **{variable: value})
    assert said in done.stdout


# The end of a process ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_exit", ["", "1"])
def test_a_process_that_exits_drops_its_queued_work(driver: Path, at_exit: str) -> None:
    late = {"REFNPU_LATE": "1", "REFNPU_DELAY_US": "1000000"}  # 500 seconds of work for each stream
    extra = {"AT_EXIT": at_exit} if at_exit else {}
    start = time.monotonic()
    done = run(driver, "a_process_exits_with_work_queued", **late, **extra)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout == ("0" if at_exit else "")
    assert time.monotonic() - start < 250


def test_an_error_that_no_call_returned_is_printed_at_exit(driver: Path) -> None:
    done = run(driver, "an_error_that_was_not_told_is_printed_at_the_exit", REFNPU_LATE="1")
    assert re.search("^refnpu: an error that no call was there to return: launch failure: kernel 'cast'", done.stderr)
