"""Each planted fault of copies, fills and pointwise ops changes the result of a small program, but not asleep."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import refnpu.testing
import torch
from builds import needs_faults

pytestmark = needs_faults

Program = Callable[[], bool]


def npu(*numbers: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=dtype).to("npu")


def lists(tensor: torch.Tensor, expected: list[float]) -> bool:
    return bool(tensor.cpu().tolist() == expected)


def is_refused(call: Callable[[], torch.Tensor]) -> bool:
    try:
        call()
    except RuntimeError:
        return True
    return False


def with_gaps() -> torch.Tensor:
    """Return six numbers: zeros, of which every second one is set to 1."""
    base = torch.zeros(6, device="npu")
    base[::2].masked_fill_(torch.ones(3, dtype=torch.bool, device="npu"), 1)
    return base


def masked_rows() -> torch.Tensor:
    """Return a square of zeros, flat, after a fill of 1 with a one-column mask that is expanded to the square."""
    mask = torch.tensor([[True], [False]]).to("npu")
    return torch.zeros(2, 2, device="npu").masked_fill_(mask.expand(2, 2), 1).flatten()


def complex_view(view: Callable[[torch.Tensor], torch.Tensor]) -> complex:
    return complex(view(torch.tensor([1 + 2j]).to("npu")).clone().cpu()[0].item())


def shifted(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[1:].copy_(tensor[:-1])


def inside_a_larger_block() -> torch.Tensor:
    base = torch.zeros(4, device="npu")
    base[1:3].fill_(1)
    return base


def chosen_by_every_other() -> torch.Tensor:
    condition = torch.tensor([True, False, True, False]).to("npu")[::2]
    return torch.where(condition, npu(1, 2), npu(3, 4))


# Statements that are true of a correct backend, by the fault that makes each false.
PROGRAMS: dict[str, Program] = {
    "copy_ignores_strides": lambda: lists(npu(1, 2, 3, 4)[::2].clone(), [1, 3]),
    "copy_ignores_offset": lambda: lists(npu(1, 2, 3)[1:].clone(), [2, 3]),
    "copy_expanded_source_as_dense": lambda: lists(npu(1, 2, 3)[:1].expand(3).contiguous(), [1, 1, 1]),
    "copy_dtype_reinterpreted": lambda: lists(npu(1, 2).to(torch.int32), [1, 2]),
    "copy_size_rounded_down": lambda: lists(torch.zeros(5, device="npu").copy_(npu(1, 2, 3, 4, 5)), [1, 2, 3, 4, 5]),
    "copy_overlap_forward": lambda: is_refused(lambda: shifted(npu(1, 2, 3))),
    "conj_bit_ignored": lambda: complex_view(lambda z: torch.zeros_like(z).copy_(z.conj())) == 1 - 2j,
    "neg_bit_ignored": lambda: complex_view(lambda z: torch.zeros_like(z).copy_(torch._neg_view(z))) == -1 - 2j,
    "masked_fill_ignores_expanded_mask": lambda: lists(masked_rows(), [1, 1, 0, 0]),
    "masked_fill_writes_gaps": lambda: lists(with_gaps(), [1, 0, 1, 0, 1, 0]),
    "fill_one_past_end": lambda: lists(inside_a_larger_block(), [0, 1, 1, 0]),
    "writes_before_start": lambda: lists(inside_a_larger_block(), [0, 1, 1, 0]),
    "where_condition_strides_ignored": lambda: lists(chosen_by_every_other(), [1, 2]),
    "broadcast_wrong_dim": lambda: lists((torch.zeros(2, 2, device="npu") + npu(1, 2)).flatten(), [1, 2, 1, 2]),
    "tail_element_skipped": lambda: lists(torch.neg(npu(1, 2), out=torch.zeros(2, device="npu")), [-1, -2]),
    "wrong_promotion": lambda: lists(npu(1, 2, dtype=torch.int64) + npu(0.5, 0.5), [1.5, 2.5]),
    "nan_lost_in_maximum": lambda: bool(torch.maximum(npu(float("nan")), npu(1)).cpu().isnan()),
    "negative_zero_lost": lambda: bool((-npu(0.0)).cpu().signbit()),
    "integer_division_rounds_wrong": lambda: lists(npu(-3, 3, dtype=torch.int64) // 2, [-2, 1]),
    "bool_stored_as_two": lambda: lists((npu(1) == npu(1)).view(torch.uint8), [1]),
    "error_not_raised": lambda: is_refused(lambda: npu(1, dtype=torch.int64) // 0),
}


@pytest.mark.parametrize("fault", PROGRAMS)
def test_a_pointwise_fault_changes_the_result_of_its_program(fault: str) -> None:
    assert PROGRAMS[fault]()
    refnpu.testing.set_fault(fault)
    assert not PROGRAMS[fault]()
