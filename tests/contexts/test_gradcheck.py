"""Gradients against finite differences: gradients that do not fit the device's results are found, of random ops too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts, ops
from conformance.contexts.gradcheck import Gradcheck
from conformance.contexts.model import How
from conformance.inventory import inventory
from conformance.judging.judge import CaseResult
from conformance.plan import cases
from conformance.plan.tiers import TIERS
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

pytestmark = pytest.mark.forked  # autograd starts threads


Op = Callable[[torch.Tensor], torch.Tensor]
CPU = torch.device("cpu")
PLAIN = How("", "", torch.no_grad)


def dropped(factor: float = 1.0) -> Op:
    """Return an op that drops each element with probability 0.5, and whose gradient is wrong by ``factor``."""

    class Dropped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.mask = torch.rand(x.shape) < 0.5
            return x * ctx.mask * 2

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            return gradients[0] * ctx.mask * 2 * factor

    applied: Op = Dropped.apply
    return applied


def with_gradient(slope: Op) -> Op:
    """Return sin, with ``slope`` as its derivative."""

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            return gradients[0] * slope(ctx.saved_tensors[0])

    applied: Op = Sine.apply
    return applied


def judged(right: Op, op: Op) -> CaseResult:
    case = case_of(dtype="float64")
    cell = replace(case.cell, layout="gradcheck")
    return judge(right, op, replace(case, cell=cell), route=Route.COMPOSITE, context=contexts.of("gradcheck"))


@pytest.mark.parametrize("op", [torch.sin, torch.exp, dropped(), lambda x: torch.view_as_complex(x.view(-1, 2)).exp()])
def test_right_gradients_pass(op: Op) -> None:
    found = judged(op, op)
    assert (found.mismatches, found.skipped) == ([], "")


def test_a_wrong_gradient_is_found() -> None:
    (mismatch,) = judged(torch.sin, with_gradient(lambda x: x.cos() * 1.01)).mismatches
    assert mismatch.check is Check.CONTEXT
    assert "give a slope of" in mismatch.facts["broken"]


def test_rounding_of_a_gradient_passes() -> None:
    assert judged(torch.sin, with_gradient(lambda x: x.float().cos().double())).mismatches == []


def test_a_wrong_gradient_of_a_random_op_is_found() -> None:
    (mismatch,) = judged(dropped(), dropped(0.5)).mismatches
    assert mismatch.check is Check.CONTEXT


def test_an_op_that_is_wrong_on_cpu_too_is_not_judged() -> None:
    wrong = with_gradient(torch.sin)
    found = judged(wrong, wrong)
    assert "the gradients on CPU are not those of its results" in found.skipped


@pytest.mark.parametrize("op", [lambda x: x.round() * 2 + x.new_tensor(0.0).requires_grad_(), torch.relu])
def test_a_step_or_an_edge_is_not_judged(op: Op) -> None:
    edge = torch.tensor([0.5, 0.0, -1.5], dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="on CPU"):
        Gradcheck.call(op, CPU, PLAIN, [edge], {})


def test_draws_that_a_seed_does_not_repeat_are_not_judged() -> None:
    calls = iter(range(99))
    with pytest.raises(NotImplementedError, match="the same seed"):
        Gradcheck.call(lambda x: x * next(calls), CPU, PLAIN, [torch.ones(2, dtype=torch.float64)], {})


def test_generators_among_the_arguments_are_seeded() -> None:
    generator = torch.Generator()

    def scaled(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return x * torch.rand(x.shape, generator=generator, dtype=x.dtype)

    assert Gradcheck.call(scaled, CPU, PLAIN, [torch.ones(4, dtype=torch.float64)], {"generator": generator}) is None


def test_random_ops_have_cells_in_float64_alone() -> None:
    overload = next(o for o in inventory("CPU") if o.name == "native_dropout")
    assert contexts.of("gradcheck").applies(overload)
    assert not contexts.of("backward").applies(overload)
    from conformance.corpus import reader

    samples = reader.load().recorded("native_dropout")
    found = cases.cells(ops.facts("native_dropout").family, "native_dropout", samples, TIERS["wide"])
    assert [c.dtype for c in found if c.layout == "gradcheck"] == ["float64"]
