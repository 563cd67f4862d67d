"""Gradients after a write: an op that uses the overwritten values, and does not notice the write, is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import contexts
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge

pytestmark = pytest.mark.forked  # autograd starts threads

Op = Callable[[torch.Tensor], torch.Tensor]


class Unnoticed(torch.autograd.Function):
    """A square that keeps its argument without ``save_for_backward``, so that autograd sees no write to it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = x.detach()
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.kept * gradients[0]


class UnnoticedResult(Unnoticed):
    """An exponential that keeps its result without ``save_for_backward``."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        result = x.exp()
        ctx.kept = result.detach()
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return ctx.kept * gradients[0]


class Copied(Unnoticed):
    """A square that keeps a copy of its argument, which is right."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = x.detach().clone()
        return x * x


def judged(cpu: Op, device: Op) -> CaseResult:
    return judge(cpu, device, case=case_of("overwritten"), context=contexts.of("overwritten"))


def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


def test_an_op_whose_saved_argument_is_watched_passes() -> None:
    assert judged(square, square).mismatches == []


def test_an_op_that_keeps_a_copy_passes() -> None:
    assert judged(square, Copied.apply).mismatches == []


@pytest.mark.parametrize(
    ("cpu", "rule", "place"), [(square, Unnoticed, 0), (torch.exp, UnnoticedResult, 1)], ids=["argument", "result"]
)
def test_a_write_that_is_not_noticed_is_found(cpu: Op, rule: type[Unnoticed], place: int) -> None:
    (mismatch,) = judged(cpu, rule.apply).mismatches
    assert mismatch.check is Check.CONTEXT
    assert mismatch.facts["broken"] == f"tensor {place} of arguments and results was written, and gradients changed"


def test_an_op_without_a_gradient_is_not_judged() -> None:
    assert judged(torch.isnan, torch.isnan).skipped
