"""Selecting by a condition equals CPU in every dtype and layout."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, LAYOUTS, RARE, check, values

layouts = pytest.mark.parametrize("layout", LAYOUTS)
dtypes = pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
MASK = torch.tensor([[True, False, True, False], [False, True, True, False], [True, True, False, False]])


@dtypes
@layouts
def test_masked_select_masked_scatter_and_nonzero_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    self, mask = place(values(3, 4, dtype=dtype)), place(MASK)
    check(torch.masked_select, self, mask)
    check(torch.Tensor.masked_scatter_, self, mask, place(values(2, 4, dtype=dtype, seed=3)))
    check(torch.masked_scatter, self, mask, values(6, dtype=dtype, seed=3))
    check(torch.nonzero, self)
    check(torch.ops.aten.nonzero_static, self, size=5)
    check(torch.ops.aten.nonzero_static, self, size=20, fill_value=-7)


def test_broadcast_masks_of_select_and_scatter_equal_cpu() -> None:
    for mask in (MASK[0], MASK[:, :1], torch.tensor(True), torch.tensor(False), MASK.expand(2, 3, 4), MASK.byte()):
        check(torch.masked_select, values(3, 4), mask)
        check(torch.Tensor.masked_scatter_, values(3, 4), mask, values(12, seed=5))
        check(torch.masked_scatter, values(3, 4), mask, values(24, seed=5))
    check(torch.masked_select, values(3, 1), MASK)
    check(torch.masked_select, values(4).expand(3, 4), MASK)


def test_wrong_masks_and_sources_raise_as_on_cpu() -> None:
    check(torch.masked_select, values(3, 4), MASK.int())
    check(torch.masked_select, values(3, 4), MASK[:, :3])
    check(torch.Tensor.masked_scatter_, values(3, 4), MASK, values(5))
    check(torch.Tensor.masked_scatter_, values(3, 4), MASK, values(12).double())
    check(torch.Tensor.masked_scatter_, values(3, 4), MASK.int(), values(12))
    check(torch.Tensor.masked_scatter_, values(4).expand(3, 4), MASK, values(12))
    check(torch.ops.aten.nonzero_static, values(3), size=-1)


def test_outs_and_empty_tensors_of_select_and_nonzero_equal_cpu() -> None:
    self = values(3, 4)
    for out in (torch.empty(0), torch.empty(6), torch.empty(12)[::2], torch.empty(9), torch.empty(6).int(), self):
        check(torch.masked_select, self, MASK, out=out)
    for out in (torch.empty(0, dtype=torch.int64), torch.empty(10, 2, dtype=torch.int64), torch.empty(1)):
        check(torch.nonzero, self, out=out)
        check(torch.ops.aten.nonzero_static.out, self, size=10, out=out)
    for empty in (torch.empty(0), torch.empty(3, 0), torch.zeros(2, 2), torch.tensor(0.0), torch.tensor(2.0)):
        check(torch.nonzero, empty)
        check(torch.ops.aten.nonzero_static, empty, size=2)
        check(torch.masked_select, empty, torch.ones_like(empty, dtype=torch.bool))
    check(torch.nonzero, torch.tensor([-0.0, float("nan"), 0.0, float("inf")]))
