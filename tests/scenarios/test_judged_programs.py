"""The judgement of a scenario: its additional runs, its differences, and features that a device does not offer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.judging import programs
from conformance.records import Observation
from conformance.scenarios import catalogue
from conformance.scenarios.model import SCENARIOS, NotOffered, Results, Scenario
from conformance.vocabulary import Check, Status
from tests.scenarios.observed import observe, planned, said


@pytest.mark.usefixtures("refnpu")
def test_a_scenario_that_is_not_slow_runs_on_the_second_device_too() -> None:
    backend = planned("refnpu").backend
    assert programs.devices(catalogue.find("masks:masked_fill"), backend) == ["npu:0", "npu:1"]
    assert programs.devices(catalogue.find("training:layers"), backend) == ["npu:0"]


@pytest.mark.forked  # it sets the number of torch's threads
def test_a_difference_on_the_second_device_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(device: str) -> Results:
        return {"value": torch.tensor(float(device == "cpu:1"))}

    monkeypatch.setattr(programs, "devices", lambda *_: ["cpu", "cpu:1"])
    (found,) = programs.judge(Scenario("m:f", run), planned("torch:cpu").backend, lambda _: None).mismatches
    assert found.subject == "value on cpu:1"


@pytest.mark.forked
def test_a_scenario_that_is_not_slow_runs_in_another_thread_too() -> None:
    main, threads = threading.get_ident(), list[bool]()

    def run(device: str) -> Results:
        threads.append(threading.get_ident() == main)
        return {"value": torch.tensor(float(threads[-1])), "lost": torch.ones(1) if threads[-1] else NotOffered("it")}

    backend = planned("torch:cpu").backend
    assert not programs.judge(Scenario("m:f", run, slow=True), backend, lambda _: None).mismatches
    assert threads == [True, True]
    (found,) = programs.judge(Scenario("m:f", run), backend, lambda _: None).mismatches
    assert found.subject == "value in another thread"


@pytest.mark.forked
def test_what_is_offered_once_is_offered_again_in_another_thread() -> None:
    calls = list[str]()

    def run(device: str) -> Results:
        calls.append(device)
        return {"value": torch.ones(1), "lost": torch.ones(1) if len(calls) < 3 else NotOffered("it")}

    (found,) = programs.judge(Scenario("m:f", run), planned("torch:cpu").backend, lambda _: None).mismatches
    assert (found.check, found.subject) == (Check.ERROR_PARITY, "lost in another thread")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Observation]:
    """Return a function that observes a scenario. Its argument gives the device's results; CPU's are three ones."""

    def observed(wrong: Callable[[], Any]) -> Observation:
        def run(device: str) -> Results:
            return {"x": torch.ones(3)} if device == "cpu" else wrong()

        monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run))
        plan = planned("torch:cpu")
        plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
        return observe(plan, "masks:made")

    return observed


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda: {"x": torch.ones(3, dtype=torch.int64)}, "dtype is int64"),
        (lambda: {"x": torch.ones(4)}, "shape is"),
        (lambda: {"x": torch.tensor([1.0, 1.0, 1.5])}, "1 of 3 elements differ"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (dict, "the device returned 0 results, CPU 1"),
    ],
)
def test_what_differs_is_named(made: Callable[[Any], Observation], wrong: Any, expected: str) -> None:
    found = made(wrong)
    assert found.status is Status.FAIL
    assert expected in said(found)


@pytest.mark.parametrize(("end", "signal"), [(os.abort, "SIGABRT"), (lambda: os._exit(3), "exit code 3")])
def test_a_scenario_that_kills_its_process_is_a_crash(
    made: Callable[[Any], Observation], end: Any, signal: str
) -> None:
    found = made(end)
    assert (found.status, found.signal) == (Status.CRASH, signal)


def refuses() -> Results:
    raise NotImplementedError("no kernel for this\nand a long list")


def has_none() -> Results:
    raise NotOffered("a second device")


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        (refuses, "not offered: no kernel for this"),
        (has_none, "not offered: a second device"),
        (lambda: {"x": NotOffered("float64")}, "not offered: x (float64)"),
        (lambda: {"all": NotOffered("float64")}, "not offered: all (float64)"),
    ],
)
def test_what_a_device_does_not_offer_is_said_and_no_failure(
    made: Callable[[Any], Observation], lacking: Any, reason: str
) -> None:
    found = made(lacking)
    assert (found.status, found.reason, found.compared) == (Status.UNSUPPORTED, reason, 0)


def test_the_rest_is_compared_where_a_part_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(device: str) -> Results:
        one, two = (1.0, 1.0) if device == "cpu" else (1.0, 2.0)
        lacking = NotOffered("float8") if device != "cpu" else torch.ones(1)
        return {"a": lacking, "b": torch.tensor(one), **({"c": torch.tensor(two)} if differs else {})}

    plan = planned("torch:cpu")
    plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
    monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run))
    differs = False
    found = observe(plan, "masks:made")
    assert (found.status, found.reason) == (Status.PASS, "not offered: a (float8)")
    differs = True
    assert observe(plan, "masks:made").status is Status.FAIL


def test_a_scenario_does_not_wait_for_threads_that_its_parent_had() -> None:
    before = torch.get_num_threads()
    plan = planned("torch:cpu")
    torch.set_num_threads(4)
    try:
        torch.rand(1000, 1000).softmax(-1)  # large enough to start all threads
        assert observe(plan, "masks:attention_mask").status is Status.PASS
    finally:
        torch.set_num_threads(before)
