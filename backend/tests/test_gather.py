"""Reading and writing at an index for each element equals CPU in every dtype and layout."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, LAYOUTS, RARE, check, values

layouts = pytest.mark.parametrize("layout", LAYOUTS)
dtypes = pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
INDEX = torch.tensor([[1, 0, 1, 2], [2, 2, 0, 1]])
EDGES = {
    "inside": torch.tensor([[1, 0], [2, 2]]),
    "int32": torch.tensor([[1, 0]], dtype=torch.int32),
    "negative": torch.tensor([[-1]]),
    "too_large": torch.tensor([[3]]),
    "empty": torch.empty(0, 2, dtype=torch.int64),
    "expanded": torch.tensor([[1]]).expand(3, 2),
    "expanded_first": torch.tensor([[0], [2]]).expand(2, 4),
    "vector": torch.tensor([1, 0]),
    "too_wide": torch.zeros(1, 9, dtype=torch.int64),
    "float": torch.zeros(1, 1),
}


@dtypes
@layouts
def test_gather_scatter_take_and_put_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    self, index = place(values(3, 4, dtype=dtype)), place(INDEX)
    source = place(values(2, 4, dtype=dtype, seed=5))
    check(torch.gather, self, 0, index)
    check(torch.gather, self, -1, place(INDEX.t().contiguous())[:3])
    check(torch.scatter, self, 0, index, source)
    check(torch.Tensor.scatter_, self, 0, index, source)
    check(torch.Tensor.scatter_, self, 0, index, 3)
    check(torch.Tensor.scatter_add_, self, 0, index, source)
    check(torch.scatter_add, self, 0, index.int(), source)
    check(torch.take, self, index)
    check(torch.Tensor.put_, self, index, source)
    check(torch.Tensor.put_, self, index - 4, source, True)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@layouts
def test_every_reduction_of_scatter_equals_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    self, index, source = place(values(3, 4, dtype=dtype)), place(INDEX), place(values(2, 4, dtype=dtype, seed=5))
    for reduce in ("sum", "prod", "mean", "amax", "amin", "median"):
        for include_self in (False, True):
            check(torch.scatter_reduce, self, 0, index, source, reduce, include_self=include_self, rtol=1e-2)
    for reduce in ("add", "multiply", "divide"):
        check(torch.scatter, self, 0, index, source, reduce=reduce)
        check(torch.Tensor.scatter_, self, 0, index, 2, reduce=reduce)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64], ids=str)
def test_sums_and_products_of_scatter_wrap_around(dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    self = torch.tensor([limits.max, limits.min, limits.min], dtype=dtype)
    source = torch.tensor([5, -3, -1], dtype=dtype)
    for reduce in ("sum", "prod"):
        check(torch.scatter_reduce, self, 0, torch.arange(3), source, reduce)


def test_reductions_of_scatter_propagate_nan() -> None:
    source = torch.tensor([1.0, float("nan"), 2.0, float("-inf")])
    for reduce in ("sum", "prod", "amax", "amin", "mean"):
        check(torch.scatter_reduce, torch.ones(2), 0, torch.tensor([0, 0, 1, 1]), source, reduce)


@pytest.mark.parametrize("name", EDGES)
def test_unusual_indices_of_gather_and_scatter_equal_cpu(name: str) -> None:
    index = EDGES[name]
    for dim in (0, 1, 2):
        check(torch.gather, values(3, 4), dim, index)
        check(torch.scatter, values(3, 4), dim, index, values(3, 4, seed=1))
        check(torch.scatter, values(3, 4), dim, index, 2.5)
        check(torch.scatter_add, values(3, 4), dim, index, values(3, 4, seed=1))
        check(torch.scatter_reduce, values(3, 4), dim, index, values(3, 4, seed=1), "amax")
    check(torch.take, values(3, 4), index * 5)
    check(torch.Tensor.put_, values(3, 4), index * 5, values(index.numel()))


def test_gather_and_scatter_of_zero_dim_tensors_equal_cpu() -> None:
    one, zero = torch.tensor(1.0), torch.tensor(0)
    check(torch.gather, one, 0, zero)
    check(torch.gather, one, 0, torch.tensor([0]))
    check(torch.gather, torch.tensor([1.0]), 0, zero)
    check(torch.scatter, one, 0, zero, torch.tensor(2.0))
    check(torch.scatter, one, 0, zero, 2.0)
    check(torch.scatter_reduce, one, 0, zero, torch.tensor(2.0), "mean")
    check(torch.take, one, zero)
    check(torch.take, values(3), torch.tensor(-1))
    check(torch.Tensor.put_, one, zero, torch.tensor(2.0))


def test_outs_and_overlaps_of_gather_and_scatter_equal_cpu() -> None:
    self, index = values(3, 4), EDGES["inside"]
    for out in (torch.empty(0), torch.empty(2, 2), torch.empty(2, 2).t(), torch.empty(2, 2).int(), self, self[:2, :2]):
        check(torch.gather, self, 0, index, out=out)
    for out in (torch.empty(0), torch.empty(4, 3).t(), torch.empty(3, 4).int(), self):
        check(torch.scatter, self, 0, index, values(3, 4, seed=2), out=out)
    for out in (torch.empty(0), torch.empty(2, 2).t(), torch.empty(5), torch.empty(2).int(), self):
        check(torch.take, self, index, out=out)
    check(torch.Tensor.scatter_, values(4).expand(3, 4), 0, index, 1.0)
    check(torch.Tensor.scatter_, self, 0, index, self)
    check(torch.Tensor.put_, values(4).expand(3, 4), index, values(2, 2))
    check(torch.Tensor.scatter_, values(3, 4, dtype=torch.int8), 0, index, 300)
    check(torch.scatter, self, 0, index, values(3, 4).double())
    check(torch.take, torch.empty(0), torch.tensor([0]))
    check(torch.take, torch.empty(0), torch.empty(0, dtype=torch.int64))
    check(torch.gather, values(4, 3).t(), 1, torch.tensor([[0, 3], [1, 2]]))
