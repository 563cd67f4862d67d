"""Batches of gradients: a backward formula that is wrong under ``torch.vmap`` alone is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts
from conformance.contexts.jacrev import Jacrev
from conformance.contexts.model import How
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

pytestmark = pytest.mark.forked  # autograd starts threads


Op = Callable[[torch.Tensor], torch.Tensor]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class WrongInBatch(torch.autograd.Function):
    """x * 2, whose gradient is wrong in a batch."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        batched = torch._C._functorch.is_batchedtensor(gradients[0])  # noqa: SLF001 - what a batching rule does
        return gradients[0] * (3 if batched else 2)


class ReadsValue(WrongInBatch):
    """x * 2, whose backward reads a value of the gradient. A batched gradient has no single value."""

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * (2 + 0 * int(gradients[0].sum().item()))


def judged(wrong: Op, context: str, variant: str = "") -> CaseResult:
    case = replace(case_of(), variant=variant)
    return judge(doubled, wrong, case, route=Route.COMPOSITE, context=contexts.of(context))


@pytest.mark.parametrize(("rule", "check"), [(WrongInBatch, Check.VALUE), (ReadsValue, Check.ERROR_PARITY)])
def test_a_wrong_batch_of_gradients_is_found_by_jacrev_alone(rule: type[WrongInBatch], check: Check) -> None:
    assert judged(rule.apply, "backward", "dense").mismatches == []
    assert {m.check for m in judged(rule.apply, "jacrev").mismatches} == {check}


@pytest.mark.parametrize("rule", [WrongInBatch, ReadsValue])
def test_a_batch_that_is_wrong_on_cpu_too_is_not_judged(rule: type[WrongInBatch]) -> None:
    with pytest.raises(NotImplementedError, match="on CPU"):
        Jacrev.call(rule.apply, torch.device("cpu"), How("", "", torch.no_grad), [torch.ones(3)], {})
