"""A buffer that a forward kernel keeps for its backward kernel may hold anything on which the two kernels agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging import private
from conformance.judging.judge import OWN, CaseResult
from conformance.ops import facts
from conformance.plan.cases import cases
from conformance.torch_versions import schema_of
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import judge

FORWARD, BACKWARD = torch.ops.aten.log_sigmoid_forward.default, torch.ops.aten.log_sigmoid_backward.default
SHAPE = (2, 3)


def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of CPU, and twice the buffer that CPU keeps."""
    value, kept = FORWARD(x)
    return value, kept * 2


def backward(g: torch.Tensor, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return BACKWARD(g, x, kept / 2)


class Forwards:
    """A forward with a kernel for each side. The second call is the device's, and all other calls are CPU's."""

    _schema = schema_of(FORWARD)

    def __init__(self, device: Callable[..., Any]) -> None:
        self._kernels = itertools.chain((FORWARD, device), itertools.repeat(FORWARD))

    def __call__(self, x: torch.Tensor) -> Any:
        return next(self._kernels)(x)


def judged(
    monkeypatch: pytest.MonkeyPatch, ours: Callable[..., Any], kept: Callable[..., Any], route: Route = Route.NATIVE
) -> CaseResult:
    """Judge the backward ``ours`` on a device whose forward is ``kept``."""
    monkeypatch.setattr(private, "forward_of", lambda overload: Forwards(kept))
    slots = [slot(i, name, SHAPE) for i, name in enumerate(("grad_output", "self", "buffer"))]
    one = sample("log_sigmoid_backward", *slots, DeviceArg(), dtypes=("float32",))
    (case,) = cases(CellId("activation", "log_sigmoid_backward", "float32", "contiguous"), [one])
    return judge(BACKWARD, ours, case=case, facts=facts("log_sigmoid_backward"), route=route)


def test_a_backward_that_is_right_with_what_its_own_forward_keeps_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    found = judged(monkeypatch, backward, forward)
    assert (found.mismatches, found.skipped) == ([], OWN)


@pytest.mark.parametrize(
    ("ours", "kept"),
    [
        (backward, FORWARD),  # the two do not agree
        (lambda g, x, kept: backward(g, x, kept) * 1.01, forward),
    ],
)
def test_a_backward_that_is_wrong_with_it_is_a_failure(
    ours: Callable[..., Any], kept: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = judged(monkeypatch, ours, kept).mismatches
    assert found.check is Check.VALUE


def test_a_failure_has_the_numbers_of_the_calls_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = judged(monkeypatch, lambda g, x, kept: backward(g, x, kept) + 1, forward).mismatches
    assert found.facts["device"] == pytest.approx(found.facts["cpu"] + 1)


def test_a_fallback_has_cpus_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, backward, forward, Route.FALLBACK).mismatches


def test_the_forward_of_a_backward_is_found_by_its_name() -> None:
    assert private.forward_of("log_sigmoid_backward.grad_input") is FORWARD
    assert private.forward_of("tanh_backward") is None
    assert private.with_own(torch.ops.aten.tanh_backward.default) is None
    assert private.with_own(torch.ops.aten.neg.default) is None
