"""Each fault of the reductions, products, norms and sorts, when awake, makes a comparison fail that passes asleep."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from against_cpu import check, values
from builds import needs_faults
from refnpu.testing import fault
from test_reduce import compare

pytestmark = needs_faults

nan = float("nan")
TIES = torch.tensor([2, 5, 5, 1])


def byte_two_is_true() -> None:
    assert torch.tensor([0, 2], dtype=torch.uint8, device="npu").view(torch.bool).any().item()


WITNESSES: dict[str, Callable[[], None]] = {
    "bf16_accumulates_in_bf16": lambda: check(torch.sum, torch.ones(1000, dtype=torch.bfloat16)),
    "reduction_permuted_dims_wrong": lambda: check(torch.sum, values(3, 4).t(), 0),
    "reduction_skips_tail": lambda: check(torch.sum, torch.ones(7)),
    "keepdim_stride_wrong": lambda: check(torch.sum, values(3, 4), 1, True),
    "mean_integer_rounding": lambda: check(torch.mean, torch.tensor([1.0, 2.0])),
    "nan_lost_in_amax": lambda: check(torch.amax, torch.tensor([1.0, nan]), 0),
    "argmax_last_tie": lambda: check(torch.argmax, TIES),
    "any_counts_bool_two": byte_two_is_true,
    "cumsum_wrong_dtype": lambda: check(torch.cumsum, torch.full((9,), 100, dtype=torch.int32), 0),
    "softmax_no_max_subtraction": lambda: compare(torch.softmax, torch.tensor([1000.0, 999.0]), 0),
    "matmul_ignores_expanded_batch_stride": lambda: compare(
        torch.bmm, values(1, 3, 4).expand(2, 3, 4), values(2, 4, 5, seed=1)
    ),
    "matmul_beta_zero_keeps_nan": lambda: compare(
        torch.addmm, torch.full((2, 2), nan), values(2, 3), values(3, 2), beta=0
    ),
    "layer_norm_eps_outside_sqrt": lambda: compare(torch.nn.functional.layer_norm, values(2, 4), [4], None, None, 0.5),
    "sort_unstable": lambda: check(torch.sort, TIES, stable=True),
    "topk_wrong_order": lambda: check(torch.topk, torch.tensor([3, 1, 2]), 2),
}


@pytest.mark.parametrize("name", WITNESSES)
def test_a_comparison_with_cpu_fails_while_a_reduce_fault_is_awake(name: str) -> None:
    witness = WITNESSES[name]
    witness()
    with fault(name), pytest.raises(AssertionError):
        witness()
