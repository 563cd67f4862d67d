"""Scans equal CPU in every dtype and layout, in place too."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, FLOATS, LAYOUTS, RARE, values
from test_reduce import SHAPES, compare

nan, inf = float("nan"), float("inf")
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
@layouts
def test_scans_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS[layout](values(*shape, dtype=dtype))
        for call in (torch.cumsum, torch.cumprod, torch.cummax, torch.cummin, torch.Tensor.cumsum_):
            for dim in (0, -1, 1, 4):
                compare(call, self, dim)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.bool, torch.bfloat16, torch.float32], ids=str)
def test_scans_with_a_dtype_or_an_out_equal_cpu(dtype: torch.dtype) -> None:
    self = values(3, 40, dtype=dtype)
    for target in (torch.int8, torch.int64, torch.float16, torch.float64, torch.complex64, torch.bool):
        compare(torch.cumsum, self, 1, dtype=target)
        compare(torch.cumsum, self, 1, out=torch.empty(0, dtype=target))
        compare(torch.cumprod, self, 0, out=torch.zeros(40, 3, dtype=target).t())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scans_of_nan_infinity_and_ties_equal_cpu(dtype: torch.dtype) -> None:
    self = torch.tensor([[1, 1, nan, 3], [inf, -inf, inf, 0], [2, 2, 1, 2]], dtype=dtype)
    for call in (torch.cumsum, torch.cumprod, torch.cummax, torch.cummin, torch.logcumsumexp):
        compare(call, self, 1)
