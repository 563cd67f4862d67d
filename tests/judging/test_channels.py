"""Channels-last arguments with an offset or as a slice: a defect that only they show is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging.judge import CaseResult
from conformance.ops.family import OpFacts
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import Op, judge

MANY, WHOLE, FEW = (2, 33, 5, 7), (3, 64, 9, 8), (2, 3, 4, 5)
GENERATED = "sizes_channels_last"


def cases_of(layout: str, shape: tuple[int, ...], dtype: str = "float32") -> list[Case]:
    one = sample("hand", slot(0, "self", shape), DeviceArg(), dtypes=(dtype,))
    one = replace(one, axis="sizes" if layout == GENERATED else "")
    return cases(CellId("misc", "hand", dtype, layout), [one])


def judged(wrong: Op, layout: str, shape: tuple[int, ...], right: Op = torch.neg, **facts: Any) -> list[CaseResult]:
    known = OpFacts("misc", **facts)
    return [judge(right, wrong, case, known) for case in cases_of(layout, shape)]


def passes(wrong: Op, layout: str, shape: tuple[int, ...]) -> list[bool]:
    return [not result.mismatches for result in judged(wrong, layout, shape)]


def at_beginning(x: torch.Tensor) -> torch.Tensor:
    """Negate ``x``, but ignore the storage offset of a channels-last tensor without gaps."""
    if not x.is_contiguous(memory_format=torch.channels_last):
        return -x
    return -x.as_strided(x.shape, x.stride(), 0)


def of_whole_vectors(x: torch.Tensor) -> torch.Tensor:
    """Negate ``x``, but in a channels-last tensor not the channels behind the last whole vector of 8."""
    result = -x
    if x.stride(1) == 1 and (rest := x.shape[1] % 8):
        result[:, -rest:] = x[:, -rest:]
    return result


def dense(x: torch.Tensor) -> torch.Tensor:
    """Negate ``x``, but read a channels-last tensor as if it had no gaps."""
    if x.stride(1) != 1:
        return -x
    stride = x.new_empty(x.shape, device="meta").contiguous(memory_format=torch.channels_last).stride()
    return torch.empty_like(x).copy_(-x.as_strided(x.shape, stride, x.storage_offset()))


@pytest.mark.parametrize(("layout", "shape"), [("channels_last", FEW), (GENERATED, MANY), (GENERATED, WHOLE)])
def test_a_right_op_passes_in_every_case(layout: str, shape: tuple[int, ...]) -> None:
    assert passes(torch.neg, layout, shape) == [True, True]


def test_an_op_that_ignores_the_offset_is_found_by_the_case_with_one() -> None:
    assert [c.variant for c in cases_of("channels_last", FEW)] == ["self", "offset"]
    assert passes(at_beginning, "channels_last", FEW) == [True, False]
    assert passes(at_beginning, GENERATED, MANY) == [False, True]


def test_an_op_that_leaves_a_part_of_a_vector_is_found_by_channels_that_are_no_whole_ones() -> None:
    assert passes(of_whole_vectors, GENERATED, MANY) == [False, False]
    assert passes(of_whole_vectors, GENERATED, WHOLE) == [True, True]


def test_an_op_that_takes_a_channel_slice_for_dense_is_found_by_the_slice() -> None:
    assert passes(dense, GENERATED, WHOLE) == [True, False]


def test_a_copy_has_no_offset_where_cpu_may_return_the_argument() -> None:
    def moved(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x.new_zeros(1), x.permute(0, 2, 3, 1).reshape(-1)]).as_strided(x.shape, x.stride(), 1)

    assert not any(r.mismatches for r in judged(torch.clone, "channels_last", FEW, lambda x: x, may_alias=True))
    found = [m.check for r in judged(moved, "channels_last", FEW, lambda x: x, may_alias=True) for m in r.mismatches]
    assert found == [Check.OFFSET, Check.OFFSET]
