"""Indexing by index tensors and along a dimension equals CPU in every dtype and layout."""

from __future__ import annotations

import itertools

import pytest
import torch
from against_cpu import ALL, LAYOUTS, RARE, check, values

layouts = pytest.mark.parametrize("layout", LAYOUTS)
dtypes = pytest.mark.parametrize("dtype", ALL + RARE, ids=str)


def index(*numbers: object, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype)


MASK = torch.tensor([[True, False, True], [False, True, True]])
INDICES = {
    "first": (index(1, 0, -2),),
    "first_int32": (index(1, 0, -2, dtype=torch.int32),),
    "scalar": (torch.tensor(1),),
    "middle": (None, index(2, 0, 1, 1)),
    "both": (index(1, 0, 1), index(2, -1, 0)),
    "broadcast": (index([1], [0]), index(2, -1, 0)),
    "apart": (index(1, 0), None, index(3, 2)),
    "last": (None, None, index(3, 0)),
    "mask": (MASK,),
    "mask_first": (torch.tensor([False, True]),),
    "uint8_mask": (MASK.to(torch.uint8),),
    "mask_and_index": (MASK, index(0, 1, 2, 3)),
    "empty": (torch.empty(0, dtype=torch.int64),),
    "empty_mask": (torch.zeros(2, 3, dtype=torch.bool),),
    "stepped": (index(1, 5, 0, 5)[::2], index(2, 5, 1, 5)[::2]),
    "expanded": (index(1).expand(3), index(2, 0, 1)),
    "too_large": (index(2),),
    "too_small": (index(-3),),
    "too_many": (index(0), index(0), index(0), index(0)),
    "float": (torch.tensor([1.0]),),
    "wrong_mask": (torch.tensor([True, False, True]),),
    "unbroadcastable": (index(0, 1), index(0, 1, 2)),
}


@pytest.mark.parametrize("name", INDICES)
@layouts
def test_index_equals_cpu(name: str, layout: str) -> None:
    check(torch.ops.aten.index.Tensor, LAYOUTS[layout](values(2, 3, 4)), list(INDICES[name]))


@dtypes
def test_index_of_every_dtype_equals_cpu(dtype: torch.dtype) -> None:
    check(torch.ops.aten.index.Tensor, values(2, 3, dtype=dtype), [index(1, -1), None])


def test_index_sizes_and_fills_an_out_as_cpu_does() -> None:
    self = values(3, 4)
    for out in (torch.empty(0), torch.empty(2, 4), torch.empty(4, 2).t(), torch.empty(2, 4, dtype=torch.float64), self):
        check(torch.ops.aten.index.Tensor_out, self, [index(1, 0)], out=out)


def test_index_of_empty_and_zero_dim_tensors_equals_cpu() -> None:
    check(torch.ops.aten.index.Tensor, torch.empty(0, 3), [index(0)])
    check(torch.ops.aten.index.Tensor, torch.empty(3, 0), [index(7)])
    check(torch.ops.aten.index.Tensor, torch.tensor(5.0), [torch.tensor(True)])
    check(torch.ops.aten.index.Tensor, torch.tensor(5.0), [torch.tensor(False)])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("name", INDICES)
@layouts
def test_index_put_equals_cpu(name: str, accumulate: bool, layout: str) -> None:
    self = LAYOUTS[layout](values(2, 3, 4))
    for value in (torch.tensor(5.0), torch.tensor([2.0]), values(4, seed=3), values(3, 1, seed=2)):
        check(torch.ops.aten.index_put_, self, list(INDICES[name]), value, accumulate)


@dtypes
def test_index_put_with_repeated_indices_equals_cpu(dtype: torch.dtype) -> None:
    where = [index(1, 0, 1, 1)]
    check(torch.ops.aten.index_put_, values(3, 2, dtype=dtype), where, values(4, 2, dtype=dtype, seed=1), True)
    check(torch.ops.aten.index_put, values(3, 2, dtype=dtype), where, values(4, 2, dtype=dtype, seed=1), False)


def test_index_put_refuses_other_dtypes_and_shapes_as_cpu_does() -> None:
    check(torch.ops.aten.index_put_, values(3), [index(1)], torch.tensor([1]), False)
    check(torch.ops.aten.index_put_, values(3), [torch.tensor([True, False, True])], torch.tensor(1), False)
    check(torch.ops.aten.index_put_, values(3), [index(1, 2)], values(3), False)
    check(torch.ops.aten.index_put_, values(3).expand(2, 3), [index(1)], values(3), False)


@dtypes
@layouts
def test_index_select_equals_cpu(dtype: torch.dtype, layout: str) -> None:
    self = LAYOUTS[layout](values(2, 3, 4, dtype=dtype))
    for dim in (-1, 0, 1):
        check(torch.index_select, self, dim, index(1, 0, 1))
        check(torch.index_select, self, dim, index(1, 0, dtype=torch.int32))


def test_edge_cases_of_index_select_equal_cpu() -> None:
    self = values(3, 4)
    for dim, where in itertools.product(
        (0, 1), (index(-1), index(4), index(), torch.tensor(2), index([1]), index(1.5))
    ):
        check(torch.index_select, self, dim, where)
    check(torch.index_select, torch.tensor(3.0), 0, torch.tensor([0]))
    check(torch.index_select, torch.tensor(3.0), 0, torch.tensor([1]))
    check(torch.index_select, torch.tensor(3.0), 0, torch.tensor([0, 0]))
    check(torch.index_select, torch.empty(0, 3), 0, index(0))
    check(torch.index_select, torch.empty(0, 3), 1, index(2, 1))
    check(torch.index_select, torch.empty(0, 3), 1, index(5))
    check(torch.index_select, values(2, 3).expand(4, 2, 3), 0, index(3, 1)[::1])
    for out in (torch.empty(0), torch.empty(2, 4), torch.empty(4, 2).t(), self, torch.empty(2, 4, dtype=torch.int64)):
        check(torch.index_select, self, 0, index(1, 0), out=out)


@dtypes
@layouts
def test_index_add_copy_and_fill_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    self = LAYOUTS[layout](values(2, 3, 4, dtype=dtype))
    for dim, _size in ((0, 2), (1, 3), (-1, 4)):
        shape = [2, 3, 4]
        shape[dim] = 3
        source = LAYOUTS[layout](values(*shape, dtype=dtype, seed=4))
        where = index(1, 0, 1)
        check(torch.index_add, self, dim, where, source)
        check(torch.Tensor.index_add_, self, dim, where.int(), source, alpha=2)
        check(torch.index_copy, self, dim, where, source)
        check(torch.Tensor.index_copy_, self, dim, where, source)
        check(torch.Tensor.index_fill_, self, dim, where - 1, 3)
        check(torch.Tensor.index_fill_, self, dim, where, torch.tensor(3))


@pytest.mark.parametrize("call", [torch.index_add, torch.index_copy, torch.Tensor.index_add_, torch.Tensor.index_copy_])
def test_edge_cases_of_index_add_and_index_copy_equal_cpu(call: object) -> None:
    assert callable(call)
    for where in (index(0, -1), index(0, 3), index(0), index([0, 1]), index(0, 1).float()):
        check(call, values(3, 2), 0, where, values(2, 2))
        check(call, values(3), 0, where, values(2))
    check(call, values(3, 2), 0, index(1), values(1, 2).double())
    check(call, values(3, 2), 5, index(1), values(1, 2))
    check(call, values(3, 2), 0, torch.tensor(1), values(1, 2))
    check(call, torch.tensor(1.0), 0, torch.tensor(0), torch.tensor(2.0))
    check(call, torch.tensor(1.0), 0, index(0), index(2).float())
    check(call, values(2).expand(3, 2), 0, index(1), values(1, 2))
    check(call, values(3, 0), 0, index(1), values(1, 0))
    check(call, values(0, 3), 1, index(1), values(0, 1))


def test_edge_cases_of_index_fill_equal_cpu() -> None:
    fill = torch.Tensor.index_fill_
    for where in (index(-3), index(-4), index(3), index(), torch.tensor(1), index([1]), index(1, dtype=torch.int32)):
        check(fill, values(3, 2), 0, where, 1.5)
    check(fill, torch.tensor(1.0), 0, index(0), 2.0)
    check(fill, values(3, dtype=torch.int8), 0, index(1), 300)
    check(fill, values(3), 0, index(1), 1j)
    check(fill, values(3), 0, index(1), torch.tensor([1.0]))
    check(fill, values(3).expand(2, 3), 0, index(1), 1.0)
    check(fill, values(3, 0), 0, index(5), 1.0)


def test_the_second_device_indexes_its_own_memory_only() -> None:
    self = values(3, 2).to("npu:1")
    assert torch.equal(self[torch.tensor([2, 0], device="npu:1")].cpu(), values(3, 2)[[2, 0]])
    with pytest.raises(RuntimeError, match="same device"):
        torch.index_select(self, 0, torch.tensor([0, 1], device="npu:0"))
