"""Triangles, their coordinates and the trace equal CPU in every dtype and layout."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, LAYOUTS, RARE, check, values


@pytest.mark.parametrize("dtype", ALL + RARE, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tril_triu_and_trace_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    self = LAYOUTS[layout](values(2, 3, 4, dtype=dtype, seed=1))
    for k in (-9, -2, -1, 0, 1, 3, 9):
        check(torch.tril, self, k)
        check(torch.triu, self, k)
        check(torch.Tensor.triu_, self, k)
        check(torch.Tensor.tril_, self, k)
    check(torch.trace, self[0], rtol=1e-3)


def test_triangles_of_unusual_shapes_and_outs_equal_cpu() -> None:
    for self in (values(3), torch.tensor(1.0), torch.empty(0, 3), torch.empty(3, 0, 2), values(1, 5).expand(4, 5)):
        check(torch.tril, self)
        check(torch.triu, self, 1)
        check(torch.Tensor.tril_, self)
        check(torch.trace, self)
    for out in (torch.empty(0), torch.empty(3, 2).t(), torch.empty(2, 3).int(), torch.empty(5)):
        check(torch.triu, values(2, 3), out=out)


def test_coordinates_in_a_triangle_of_many_rows_take_as_long_as_there_are_coordinates() -> None:
    check(lambda anchor: torch.triu_indices(2**40, 3, device=anchor.device), values(1))
    check(lambda anchor: torch.tril_indices(2**40, 3, 2 - 2**40, device=anchor.device), values(1))
    check(lambda anchor: torch.tril_indices(3, 2**40, -1, device=anchor.device), values(1))


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (4, 2), (0, 3), (3, 0), (-1, 2)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_tril_indices_and_triu_indices_equal_cpu(rows: int, columns: int, dtype: torch.dtype) -> None:
    for k in (-5, -1, 0, 1, 5):
        for call in (torch.tril_indices, torch.triu_indices):
            check(lambda anchor, call=call, k=k: call(rows, columns, k, dtype=dtype, device=anchor.device), values(1))


def test_a_trace_of_integers_wraps_around_as_on_cpu() -> None:
    check(torch.trace, torch.full((3, 3), 2**62 + 1))  # a sanitizer reports undefined overflow
