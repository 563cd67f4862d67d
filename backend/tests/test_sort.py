"""Sorting equals CPU in every dtype and layout: stable, NaN last."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_cpu import ALL, FLOATS, LAYOUTS, RARE, check, values
from test_reduce import compare

aten: Any = torch.ops.aten
inf, nan = float("inf"), float("nan")
SHAPES = ((2, 3, 5), (17,), (), (0,), (2, 0, 3))


@pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stable_sorts_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS[layout](values(*shape, dtype=dtype))
        for dim in (0, -1, 1, 4):
            for descending in (False, True):
                check(torch.sort, self, dim=dim, descending=descending, stable=True)
                check(torch.argsort, self, dim=dim, descending=descending, stable=True)
        out = torch.zeros(5, 3, 2, dtype=dtype).permute(2, 1, 0), torch.empty(0, dtype=torch.int64)
        check(aten.sort.values_stable, self, stable=True, dim=0, values=out[0], indices=out[1])


@pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_topk_and_kthvalue_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    """Elements are distinct, because torch does not define which of equal elements is picked."""
    distinct = torch.tensor([[3, 9, 1, 7, 5], [2, 8, 6, 0, 4]]).to(torch.float32).to(dtype)
    self = LAYOUTS[layout](distinct)
    for k in (0, 1, 3, 5, 6):
        for largest in (True, False):
            check(torch.topk, self, k, 1, largest)
        check(torch.kthvalue, self, k, 1)
        check(torch.kthvalue, self, k, 1, True)
    check(torch.topk, self, 1, 0)
    check(torch.topk, self[0, 0], 1)
    check(torch.kthvalue, self[0, 0], 1)
    check(torch.kthvalue, self[:, :0], 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sorts_place_nan_last_as_cpu_does(dtype: torch.dtype) -> None:
    self = torch.tensor([[1, nan, -inf, inf, 0], [nan, 2, nan, 1, -0.0]], dtype=dtype)
    for descending in (False, True):
        compare(torch.sort, self, dim=1, descending=descending, stable=True)
        compare(torch.topk, self[:1], 2, largest=descending)
    compare(torch.msort, self)
    compare(torch.kthvalue, self[:1], 5)
