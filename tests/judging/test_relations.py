"""Drawn results of one call: results that determine one another on CPU have to do so on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import ops
from conformance.corpus.model import DeviceArg
from conformance.judging.judge import CaseResult
from conformance.ops.family import Random
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import judge

Pair = tuple[torch.Tensor, torch.Tensor]
SHAPE = (8, 40)


def dropout(x: torch.Tensor) -> Pair:
    kept, mask = torch.native_dropout(x, 0.25, True)
    return kept, mask


def judged(
    right: Callable[..., Any], wrong: Callable[..., Any], op: str = "native_dropout", dtype: str = "float32",
    noise: bool = False, layout: str = "contiguous",
) -> CaseResult:  # fmt: skip
    """Judge one case of a random op, with arguments of both signs."""
    tensors = [slot(0, "self", SHAPE), *([slot(1, "noise", SHAPE, written=True)] if noise else [])]
    case = cases(CellId("misc", "hand", dtype, layout), [sample("hand", *tensors, DeviceArg(), dtypes=(dtype,))])[0]

    def values(slot: Any, dtype: str) -> torch.Tensor:
        drawn = torch.randn(slot.shape, generator=torch.Generator().manual_seed(slot.index))
        return drawn.to(getattr(torch, dtype))

    return judge(right, wrong, case, ops.facts(op), values=values)


MASKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "all": torch.ones_like,
    "none": torch.zeros_like,
    "inverted": torch.logical_not,
    "of other elements": lambda mask: mask.flip(0),
    "drawn again": lambda mask: torch.empty_like(mask).bernoulli_(0.75),
    "of 64 elements": lambda mask: torch.cat((mask[:-1], mask[-1:].flip(1))),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "complex64"])
@pytest.mark.parametrize("change", MASKS.values(), ids=MASKS)
def test_a_mask_belongs_to_what_is_kept(change: Callable[[torch.Tensor], torch.Tensor], dtype: str) -> None:
    def another(x: torch.Tensor) -> Pair:
        kept, mask = dropout(x)
        return kept, change(mask)

    (found,) = judged(dropout, another, dtype=dtype).mismatches
    assert (found.check, found.subject, found.facts["kind"]) == (Check.DISTRIBUTION, "result[1]", "unrelated_draws")
    assert (found.facts["other"], found.facts["factor"]) == ("result[0]", "self")
    assert complex(found.facts["multiple"]) == pytest.approx(4 / 3, rel=1e-2)


@pytest.mark.parametrize("layout", ["contiguous", "as_strided", "transposed"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "complex64"])
def test_other_draws_of_both_are_right(dtype: str, layout: str) -> None:
    def by_numbers(x: torch.Tensor) -> Pair:
        mask = torch.empty_like(x).real.uniform_() >= 0.25 if x.is_complex() else torch.rand_like(x.double()) >= 0.25
        return torch.where(mask, x / 0.75, 0), torch.empty_like(x, dtype=torch.bool).copy_(mask)

    assert judged(dropout, by_numbers, dtype=dtype, layout=layout).mismatches == []


def rrelu(x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.rrelu_with_noise(x, noise, 0.1, 0.4, True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_noise_that_is_written_belongs_to_its_product(dtype: str) -> None:
    def right(x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        drawn = torch.empty_like(x, dtype=torch.float64).uniform_(0.1, 0.4)
        factor = torch.where(x <= 0, drawn, 1.0)
        noise.copy_(factor)
        return torch.empty_like(x).copy_(x * factor)

    def of_ones(x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        result = rrelu(x, noise)
        noise.fill_(1)
        return result

    assert judged(rrelu, right, "rrelu_with_noise", dtype, noise=True).mismatches == []
    (found,) = judged(rrelu, of_ones, "rrelu_with_noise", dtype, noise=True).mismatches
    assert (found.subject, found.facts["kind"]) == ("noise", "unrelated_draws")


def test_results_that_are_independent_on_cpu_may_be_anything() -> None:
    def both(x: torch.Tensor) -> Pair:
        return torch.rand_like(x), torch.rand_like(x)

    facts = replace(ops.facts("rand_like"), random=Random("uniform", (0, 1)))
    case = cases(CellId("misc", "hand", "float32", "contiguous"), [sample("hand", slot(0, "self", SHAPE), DeviceArg())])
    assert judge(both, lambda x: both(x)[::-1], case[0], facts).mismatches == []
