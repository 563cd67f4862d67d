"""The sums of products in the pinned corpus are long enough to find a bfloat16 kernel that rounds partial sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg, Sample
from conformance.corpus.reader import load
from conformance.inventory import call_of
from conformance.judging.tolerances import criteria_of
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.two_sides import judge

PIECE = 64  # a wrong sum is rounded after this many terms
DEEP = 1025

# The product in an op, and the number of arguments before its factors.
PRODUCTS = {
    "addmm": (torch.mm, 1), "addmm.out": (torch.mm, 1), "addmv": (torch.mv, 1), "addmv.out": (torch.mv, 1),
    "baddbmm": (torch.bmm, 1), "baddbmm.out": (torch.bmm, 1), "bmm": (torch.bmm, 0), "bmm.out": (torch.bmm, 0),
    "mm.out": (torch.mm, 0), "vdot": (torch.dot, 0), "vdot.out": (torch.dot, 0),
}  # fmt: skip


def depth(sample: Sample) -> int:
    _, before = PRODUCTS[sample.overload]
    return sample.tensors[before].shape[-1]


def rounding(overload: str) -> Callable[..., torch.Tensor]:
    """Return an op that keeps its sum in the dtype of the result, and adds to it pieces summed in float32."""
    product, before = PRODUCTS[overload]

    def op(*given: torch.Tensor, beta: float = 1, alpha: float = 1, out: torch.Tensor | None = None) -> torch.Tensor:
        a, b = given[before:]
        along = min(b.dim() - 1, a.dim() - 2) if a.dim() > 1 else 0
        found = torch.zeros(())
        for pair in zip(a.float().split(PIECE, -1), b.float().split(PIECE, along), strict=True):
            found = (found.float() + product(*pair)).to(a.dtype)
        if before:
            added = alpha * found.float()
            found = (added + beta * given[0].float() if beta else added).to(a.dtype)
        return found if out is None else out.resize_(found.shape).copy_(found)

    return op


def differs(sample: Sample, dtype: str, wrong: Callable[..., Any]) -> bool:
    """Return whether a device with the ``wrong`` op differs in a sample."""
    given = replace(sample, args=(*sample.args, DeviceArg()))
    (case,) = cases(CellId("hand", sample.overload, dtype, "sizes"), [given])
    criteria = criteria_of(sample.overload)
    return bool(judge(call_of(sample.overload), wrong, case, criteria, values=load().value).mismatches)


@pytest.mark.parametrize("overload", PRODUCTS)
def test_a_sum_that_is_rounded_after_each_64_terms_is_found(overload: str) -> None:
    dtype = "bfloat16"
    samples = [s for s in load().samples(overload) if s.axis == "sizes" and dtype in s.dtypes and depth(s) >= DEEP]
    assert any(differs(s, dtype, rounding(overload)) for s in samples)
    assert not any(differs(s, dtype, call_of(overload)) for s in samples[:1])
