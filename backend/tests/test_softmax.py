"""Softmax, log-softmax and their gradients equal CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_cpu import FLOATS, LAYOUTS, values
from test_reduce import compare

aten: Any = torch.ops.aten
inf, nan = float("inf"), float("nan")
SHAPES = ((2, 3, 5), (7,), (), (0,), (2, 0, 3))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_softmax_and_its_gradient_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS[layout](values(*shape, dtype=dtype))
        grad = LAYOUTS[layout](values(*shape, dtype=dtype, seed=4))
        for dim in (0, -1, 1, 5):
            for call in (aten._softmax, aten._log_softmax):
                compare(call, self, dim, False)
                compare(call.out, self, dim, False, out=torch.empty(0, dtype=dtype))
            for call in (aten._softmax_backward_data, aten._log_softmax_backward_data):
                compare(call, grad, self, dim, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax_of_extreme_rows_equals_cpu(dtype: torch.dtype) -> None:
    rows = [[1000, 999, -1000], [-inf, 0, 1], [-inf, -inf, -inf], [nan, 0, 1], [inf, 1, 2]]
    for call in (torch.softmax, torch.log_softmax):
        compare(call, torch.tensor(rows, dtype=dtype), 1)
        compare(call, torch.tensor(rows, dtype=dtype), 1, dtype=torch.float64)


def test_softmax_from_half_to_float_equals_cpu() -> None:
    compare(aten._softmax, values(3, 4, dtype=torch.float16), 1, True)
    compare(torch.softmax, values(3, 4, dtype=torch.float16), 1, dtype=torch.float32)
    compare(torch.log_softmax, values(3, 4, dtype=torch.float16), 1, dtype=torch.float32)
