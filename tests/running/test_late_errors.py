"""Errors of late work: the run of a cell that counts, and a device that reports an error at a later call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from conformance import backends, ops
from conformance.backends import Capabilities
from conformance.judging import oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Side, Twins
from conformance.plan.case import Case
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.records import CaseFailure, Mismatch, Observation
from conformance.running.cell_runner import CellRunner
from conformance.running.late_errors import ASKED, LateErrorInquiry, late_error
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Check, Fact, Status

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")
LATE = {"type": "RuntimeError", "message": "of some kernel"}


def raised(case: str) -> CaseFailure:
    facts = {"kind": Fact.ERRORS.value, "device": LATE, "cpu": None}
    return CaseFailure(case, (Mismatch(Check.ERROR_PARITY, "", facts),))


def observed(*failures: CaseFailure) -> Observation:
    return Observation(CELL, "native", Status.FAIL if failures else Status.PASS, 4, failures)


def test_a_case_behind_another_may_have_met_its_error() -> None:
    assert LateErrorInquiry().suspects(observed(raised("second")), None, "first")
    assert not LateErrorInquiry().suspects(observed(raised("first")), None, "first")
    assert not LateErrorInquiry().suspects(
        observed(CaseFailure("second", (Mismatch(Check.VALUE, "", {}),))), None, "first"
    )
    assert LateErrorInquiry().suspects(observed(), LATE, "first")


def test_an_error_that_cpu_raises_too_is_the_case_s_own() -> None:
    facts = {"kind": Fact.ERRORS.value, "device": LATE, "cpu": LATE}
    both = CaseFailure("second", (Mismatch(Check.ERROR_PARITY, "", facts),))
    assert not LateErrorInquiry().suspects(observed(both), None, "first")


def test_cells_of_an_overload_whose_errors_are_its_own_run_again_a_few_times() -> None:
    inquiry, own = LateErrorInquiry(), observed(raised("second"))
    for _ in range(ASKED):
        assert inquiry.suspects(own, None, "first")
        assert inquiry.charged(own, None, own, "last") is own
    assert not inquiry.suspects(own, None, "first")
    assert inquiry.suspects(own, LATE, "first")  # an error at the end of the cell is known to be late


def test_the_run_that_finds_another_case_is_believed() -> None:
    settled = observed(raised("first"))
    assert LateErrorInquiry().charged(observed(raised("second")), None, settled, "last") is settled


def test_an_error_that_does_not_come_again_is_not_lost() -> None:
    for again in (observed(), None):
        assert LateErrorInquiry().charged(observed(raised("second")), None, again, "last") == observed(raised("second"))
        found = LateErrorInquiry().charged(observed(), LATE, again, "last")
        assert (found.status, found.failures) == (Status.FAIL, (CaseFailure("last", (late_error(LATE),)),))


# A device ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def planted() -> Iterator[None]:
    testing = pytest.importorskip("refnpu.testing", reason="the reference NPU is not installed")
    testing.set_fault("error_told_by_next_launch")
    yield
    testing.set_fault(None)


def statuses() -> dict[str, tuple[Status, set[str]]]:
    """Run a cell whose kernel raises, then another in its process. Return status and device errors by overload."""
    work = CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))
    runner, found = Runner(work, timeout=600), {}
    try:
        for overload in ("masked_fill_.Scalar", "neg.out"):
            seen = runner.observe(CellId(ops.facts(overload).family, overload, "float32", "contiguous"))
            errors = {
                m.facts["device"]["message"] for f in seen.failures for m in f.mismatches if m.check == "error_parity"
            }
            found[overload] = (seen.status, errors)
    finally:
        runner.close()
    return found


@pytest.mark.usefixtures("planted")
def test_an_error_that_a_later_call_tells_is_charged_to_the_op_that_caused_it() -> None:
    found = statuses()
    status, errors = found["masked_fill_.Scalar"]
    assert status is Status.FAIL
    assert errors == {"launch failure: kernel 'masked_fill': planted"}
    assert found["neg.out"] == (Status.PASS, set())


@pytest.mark.usefixtures("planted")
def test_without_the_second_run_the_next_op_would_be_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CellRunner, "settle", lambda _: None)
    monkeypatch.setattr(LateErrorInquiry, "suspects", lambda *_: False)
    assert statuses()["neg.out"] == (Status.FAIL, {"launch failure: kernel 'masked_fill': planted"})


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulate a device that is unusable from a failing kernel to the end of its process."""
    testing = pytest.importorskip("refnpu.testing", reason="the reference NPU is not installed")
    call, side, initialize = oracle.call, Twins.side, Capabilities.initialize
    errors, used = list[BaseException](), list[Capabilities]()

    def called(*given: Any) -> CallOutcome:
        outcome = call(*given)
        errors.extend([outcome.error] if outcome.error and "planted" in str(outcome.error) else [])
        return outcome

    def placed(twins: Twins, case: Case, device: torch.device) -> Side:
        if errors and device.type == "npu":
            raise errors[0]
        return side(twins, case, device)

    def initialized(backend: Capabilities) -> None:
        used.append(backend)
        initialize(backend)

    monkeypatch.setattr(Capabilities, "initialize", initialized)
    monkeypatch.setattr(Capabilities, "late_error", lambda _: errors[0] if errors and used else None)
    monkeypatch.setattr(oracle, "call", called)
    monkeypatch.setattr(Twins, "side", placed)
    testing.set_fault("kernel_raises")
    yield
    testing.set_fault(None)


@pytest.mark.usefixtures("lost")
def test_no_case_meets_a_device_that_another_has_lost() -> None:
    plan = Plan(backends.find("refnpu"), Selection(), seed=20)
    cells = [CellId(ops.facts(o).family, o, "float32", "contiguous") for o in ("masked_fill_.Scalar", "neg.out")]
    runner = Runner(CellRunner(plan), timeout=600)
    try:
        failing, passing = map(runner.observe, cells)
    finally:
        runner.close()
    assert (failing.status, passing.status) == (Status.FAIL, Status.PASS)
    assert failing.cases == len(plan.case_ids(cells[0]))
    assert [f.trouble for f in failing.failures] == [""] * len(failing.failures)
