"""A device that raises in a call, and in every later call."""

from __future__ import annotations

import pytest
import torch

from conformance.backends import Capabilities
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check, Fact
from tests.two_sides import Device, Op, judge

ASSERTED = {"type": "RuntimeError", "message": "device-side assert"}


def refuses(x: torch.Tensor) -> torch.Tensor:
    raise IndexError("out of range")


class Lost(Device):
    """A device whose calls raise an error, and which raises it in every later call too."""

    sticky_errors = False

    def call(self, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("device-side assert")


class LostBySticky(Lost):
    """A lost device whose backend declares its errors sticky."""

    sticky_errors = True


@pytest.fixture(autouse=True)
def useless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each late error check report a lost device."""
    monkeypatch.setattr(Capabilities, "late_error", lambda _: RuntimeError("device-side assert"))


def judged(cpu: Op, device: Lost) -> CaseResult:
    found = judge(cpu, device.call, device=device)
    assert found.raised is not None
    assert all(m.check is Check.ERROR_PARITY for m in found.mismatches)
    return found


@pytest.mark.parametrize("device", [Lost(), LostBySticky()])
def test_an_error_that_cpu_does_not_raise_is_a_failure_on_every_device(device: Lost) -> None:
    (mismatch,) = judged(torch.neg, device).mismatches
    assert mismatch.facts == {"kind": Fact.ERRORS.value, "device": ASSERTED, "cpu": None}


def test_a_device_that_bad_arguments_make_useless_is_at_fault() -> None:
    (mismatch,) = judged(refuses, Lost()).mismatches
    assert mismatch.facts == {"kind": Fact.DEVICE_LOST.value, "device": ASSERTED}


def test_a_device_whose_errors_are_sticky_may_report_bad_arguments_so() -> None:
    assert judged(refuses, LostBySticky()).mismatches == []


def test_a_device_that_returns_is_not_asked_whether_it_is_lost() -> None:
    found = judge(torch.neg)
    assert (found.raised, found.mismatches) == (None, [])


def test_a_device_that_raises_and_goes_on_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Capabilities, "late_error", lambda _: None)
    found = judge(refuses)
    assert (found.raised, found.mismatches) == (None, [])
