"""Second derivatives: an op with right first derivatives and wrong second derivatives is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

pytestmark = pytest.mark.forked  # autograd starts threads


Op = Callable[[torch.Tensor], torch.Tensor]


class Cut(torch.autograd.Function):
    """The gradient of a cube, without a derivative by the argument."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, gradient)
        return 3 * x * x * gradient

    @staticmethod
    def backward(ctx: Any, *seeds: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor]:
        x, _ = ctx.saved_tensors
        return None, 3 * x * x * seeds[0]


class Slope(Cut):
    """The gradient of a cube, with half of its derivative by the argument."""

    @staticmethod
    def backward(ctx: Any, *seeds: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor]:
        x, gradient = ctx.saved_tensors
        return 3 * x * gradient * seeds[0], 3 * x * x * seeds[0]


class ByGradient(Cut):
    """The gradient of a cube, with a wrong derivative by the gradient of the result."""

    @staticmethod
    def backward(ctx: Any, *seeds: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor]:
        x, gradient = ctx.saved_tensors
        return 6 * x * gradient * seeds[0], 3 * x.abs() * seeds[0]


def cubed(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


def cubed_with(rule: type[Cut]) -> Op:
    """Return a cube whose first gradient is right, and is computed by ``rule``."""

    class Cubed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = rule.apply(ctx.saved_tensors[0], gradients[0])
            return found

    applied: Op = Cubed.apply
    return applied


def judged(wrong: Op, context: str, variant: str = "") -> CaseResult:
    case = replace(case_of(), variant=variant)
    return judge(cubed, wrong, case, route=Route.COMPOSITE, context=contexts.of(context))


def test_right_second_derivatives_pass() -> None:
    found = judged(cubed, "gradgrad")
    assert (found.mismatches, found.skipped) == ([], "")


@pytest.mark.parametrize("rule", [Slope, ByGradient])
def test_wrong_second_derivatives_are_found_by_gradgrad_alone(rule: type[Cut]) -> None:
    assert judged(cubed_with(rule), "backward", "dense").mismatches == []
    assert {m.check for m in judged(cubed_with(rule), "gradgrad").mismatches} == {Check.VALUE}


def test_an_op_without_a_second_derivative_is_not_judged() -> None:
    result = judge(torch.sign, case=case_of(dtype="int64"), context=contexts.of("gradgrad"))
    assert "no result needs a gradient" in result.skipped


def test_a_first_gradient_that_is_cut_off_from_the_argument_is_found() -> None:
    assert judged(cubed_with(Cut), "backward", "dense").mismatches == []
    assert judged(cubed_with(Cut), "gradgrad").mismatches
