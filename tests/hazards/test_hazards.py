"""Hazards on the reference NPU: the clean device passes, and each planted fault is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

from refnpu import testing  # only if it is installed

from conformance import backends
from conformance.hazards import runner
from conformance.hazards.model import HAZARDS
from tests.hazards.planted import ALSO_FOUND_BY, FOUND_BY, FOUND_BY_THE_DRIVER_S_TESTS, FOUND_WHEN_RECORDED

BACKEND = backends.find("refnpu")
#: Rounds with equal delays. On a loaded machine, the host may be slower than 10 ms of queued work, and the next block
#: of the allocator depends on the blocks that earlier tests left.
TRIES = 5


@pytest.fixture
def awake() -> Iterator[None]:
    yield
    testing.set_fault(None)


def assert_names_both_calls(name: str, failure: str) -> None:
    """Assert that a failure names both calls. The device may also raise, if a launch got another launch's arguments."""
    hazard = HAZARDS[name]
    missing = f"missing dependency: {hazard.later} did not wait for {hazard.earlier}: "
    assert failure.startswith((missing, f"{hazard.later}, after {hazard.earlier}: the device raised "))


@pytest.mark.parametrize("name", runner.names())
def test_the_clean_device_keeps_every_dependency(name: str) -> None:
    result = runner.run(name, BACKEND, runner.rounds_of(BACKEND, 4, first_seed=0), 120)
    assert (result.failure, result.lacking) == ("", "")


@pytest.mark.parametrize(("fault", "name"), [*FOUND_BY.items(), *ALSO_FOUND_BY])
@pytest.mark.usefixtures("awake")
def test_a_planted_fault_is_found_and_names_the_two_calls(fault: str, name: str) -> None:
    testing.set_fault(fault)
    result = runner.run(name, BACKEND, [runner.Schedule(runner.DELAY)] * TRIES, 120)
    assert_names_both_calls(name, result.failure)


@pytest.mark.parametrize("name", runner.names())
def test_the_clean_device_keeps_every_dependency_of_recorded_work(name: str) -> None:
    with testing.lazy():
        result = runner.run(name, BACKEND, [runner.Schedule(0)], 120)
    assert (result.failure, result.lacking) == ("", "")


@pytest.mark.parametrize("fault", FOUND_WHEN_RECORDED)
@pytest.mark.usefixtures("awake")
def test_a_planted_fault_of_recorded_work_is_found(fault: str) -> None:
    testing.set_fault(fault)
    name = FOUND_WHEN_RECORDED[fault]
    with testing.lazy():
        result = runner.run(name, BACKEND, [runner.Schedule(0)] * TRIES, 120)
    assert_names_both_calls(name, result.failure)


@pytest.mark.parametrize("fault", ["wait_event_ignored", "stage_not_taken", "work_overtakes"])
@pytest.mark.usefixtures("awake")
def test_random_programs_find_a_fault(fault: str) -> None:
    testing.set_fault(fault)
    result = runner.run(runner.RANDOM, BACKEND, runner.rounds_of(BACKEND, 20, first_seed=1), 240)
    assert re.search(r"^missing dependency: (within )?step \d+ \(", result.failure)


def test_the_faults_of_late_work_are_all_there() -> None:
    assert testing.faults().keys() >= {*FOUND_BY, *FOUND_BY_THE_DRIVER_S_TESTS, *FOUND_WHEN_RECORDED}


def hazard(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", "hazard", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_the_command_says_what_held_and_under_what() -> None:
    done = hazard("kernels_run_in_order", "--rounds", "2", "--backend", "refnpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == (
        "kernels_run_in_order: held in 2 rounds\n"
        "hazards: 1 run, 0 failed, 0 not run\n"
        "each ran under 2 schedules: equal delays, and delays drawn from seeds\n"
    )


def test_the_command_fails_for_a_missing_dependency() -> None:
    done = hazard("kernels_run_in_order", "--backend", "refnpu", REFNPU_FAULT="work_overtakes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "missing dependency: the next kernel of the stream did not wait for a kernel of a stream: x: " in done.stdout
    assert "(2000 µs before each piece of work)" in done.stdout


@pytest.mark.parametrize("fault", ["partial_run_donates", "partial_run_keeps_first_argument", "partial_run_drops_rest"])
def test_random_programs_find_a_fault_of_recorded_work(fault: str) -> None:
    few = ("--rounds", "40", "--seed", "5", "--backend", "refnpu")
    done = hazard(runner.RANDOM, *few, REFNPU_LAZY="1", REFNPU_FAULT=fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "missing dependency: step 1 (" in done.stdout


def test_the_command_says_what_a_backend_lacks() -> None:
    done = hazard("kernels_run_in_order", "--backend", "torch:cpu")
    assert done.returncode == 2
    assert "kernels_run_in_order: NOT RUN: the backend has no queue of work: CPU runs each call at once" in done.stderr


def test_the_hazards_are_listed_with_what_each_is_about() -> None:
    lines = hazard("--list").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == runner.names()
    assert (
        "read_after_wait_event: wait_event() and the reader, after the producer on another stream; needs streams"
        in lines
    )


def test_an_unknown_hazard_is_answered_with_near_ones() -> None:
    with pytest.raises(LookupError, match="near: pinned_source_freed"):
        runner.run("pinned_source_free", BACKEND, [], 60)
