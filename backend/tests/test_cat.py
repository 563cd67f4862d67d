"""Joining and rearranging whole tensors equals CPU in every dtype and layout."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, LAYOUTS, RARE, check, values

layouts = pytest.mark.parametrize("layout", LAYOUTS)
dtypes = pytest.mark.parametrize("dtype", ALL + RARE, ids=str)


@dtypes
@layouts
def test_cat_stack_flip_roll_and_pad_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    self, other = place(values(2, 3, 4, dtype=dtype)), values(2, 1, 4, dtype=dtype, seed=3)
    check(torch.cat, [self, other, self], 1)
    check(torch.cat, [self, self], -1)
    check(torch.stack, [self, self], 2)
    check(torch.flip, self, [0, -1])
    check(torch.roll, self, 1, 1)
    check(torch.roll, self, [1, -5], [0, 2])
    check(torch.roll, self, 7)
    check(torch.constant_pad_nd, self, [1, 2, 0, 1], 3)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_cat_promotes_dtypes_as_cpu_does(dtype: torch.dtype) -> None:
    for other in (torch.int8, torch.float32, torch.complex64, torch.bool):
        check(torch.cat, [values(2, 3, dtype=dtype), values(1, 3, dtype=other, seed=2)])
        check(torch.cat, [values(2, dtype=dtype), values(3, dtype=dtype)], out=torch.empty(5, dtype=other))


def test_cat_of_empty_expanded_and_unequal_tensors_equals_cpu() -> None:
    self, nothing = values(2, 3), torch.empty(0)
    check(torch.cat, [nothing, self, nothing])
    check(torch.cat, [nothing, nothing.int()])
    check(torch.cat, [torch.empty(0, 3), self])
    check(torch.cat, [self.expand(4, 2, 3), self.expand(4, 2, 3)], 1)
    check(torch.cat, [torch.tensor(1.0), torch.tensor(2.0)])
    check(torch.cat, [self, values(2, 4)])
    check(torch.cat, [self, values(2)])
    check(torch.cat, [self, self], 2)
    check(torch.cat, [])
    channels_last = values(2, 3, 4, 5).to(memory_format=torch.channels_last)
    check(torch.cat, [channels_last, channels_last], 1)
    check(torch.cat, [channels_last, values(2, 3, 4, 5)], 1)
    for out in (torch.empty(0), torch.empty(4, 3), torch.empty(3, 4).t(), torch.empty(4, 3).int(), self):
        check(torch.cat, [self, self], out=out)


def test_edge_cases_of_flip_roll_and_repeat_interleave_equal_cpu() -> None:
    for self in (torch.tensor(1.0), torch.empty(0, 3), values(3), values(2, 3).expand(2, 2, 3)):
        check(torch.flip, self, [0])
        check(torch.flip, self, [])
        check(torch.flip, self, [0, 0])
        check(torch.flip, self, [5])
        check(torch.roll, self, 1, 0)
        check(torch.roll, self, 2)
        check(torch.roll, self, [1, 2], [0])
        check(torch.roll, self, [])
    for repeats in (
        torch.tensor([2, 0, 3]),
        torch.tensor([1, 2], dtype=torch.int32),
        torch.tensor([], dtype=torch.int64),
    ):
        check(torch.repeat_interleave, repeats)
    for repeats in (torch.tensor([1, -1]), torch.tensor([1.0]), torch.tensor([[1]]), torch.tensor(1)):
        check(torch.repeat_interleave, repeats)
    check(torch.repeat_interleave, torch.tensor([1, 2]), output_size=3)
    check(torch.repeat_interleave, torch.tensor([5, 1, 5, 2])[1::2])
    check(torch.repeat_interleave, values(2, 3), torch.tensor([1, 2]), 0)
