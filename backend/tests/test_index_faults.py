"""Each fault of the indexing, joining and random ops, when awake, makes a comparison fail that passes otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from against_cpu import check, values
from builds import needs_faults
from refnpu.testing import fault

pytestmark = needs_faults

STEPPED = torch.tensor([0, 2, 1, 1, 0, 2])[::2]


def ends_are_in_range() -> None:
    assert (torch.empty(50, device="npu").uniform_() < 1).all()


def seeds_matter() -> None:
    torch.npu.manual_seed_all(1)
    one = torch.rand(5, device="npu")
    torch.npu.manual_seed_all(2)
    assert not torch.equal(one, torch.rand(5, device="npu"))


def dropout_keeps_the_sum() -> None:
    assert set(torch.native_dropout(torch.ones(99, device="npu"), 0.5, True)[0].cpu().tolist()) == {0.0, 2.0}


def row_is_the_one_told() -> None:
    check(torch.index_select, values(4, 2)[:3], 0, torch.tensor([0, 1]))


WITNESSES: dict[str, Callable[[], None]] = {
    "index_ignores_stride_of_index": lambda: check(torch.ops.aten.index.Tensor, values(3, 2), [STEPPED]),
    "gather_expanded_index_as_dense": lambda: check(
        torch.gather, values(3, 4), 0, torch.tensor([[1], [2]]).expand(2, 4)
    ),
    "index_put_accumulate_races": lambda: check(
        torch.ops.aten.index_put_, values(3), [torch.tensor([1, 1])], values(2, seed=3), True
    ),
    "scatter_writes_wrong_dim": lambda: check(
        torch.scatter, values(3, 3), 0, torch.tensor([[1, 2, 0]]), values(1, 3, seed=5)
    ),
    "cat_ignores_input_strides": lambda: check(torch.cat, [values(2, 3).t(), values(3, 2)]),
    "cat_drops_last": lambda: check(torch.cat, [values(2), values(3, seed=5)], out=torch.full((5,), 99.0)),
    "triu_off_by_one": lambda: check(torch.triu, values(3, 3, seed=1)),
    "negative_index_not_wrapped": lambda: check(torch.ops.aten.index.Tensor, values(3), [torch.tensor([-1])]),
    "index_select_reads_past_end": row_is_the_one_told,
    "masked_select_mask_not_broadcast": lambda: check(
        torch.masked_select, values(2, 3), torch.tensor([[True], [False]])
    ),
    "arange_float_end_included": lambda: check(lambda t: torch.arange(3.0, device=t.device), values(1)),
    "embedding_ignores_weight_stride": lambda: check(torch.ops.aten.embedding, values(2, 3).t(), torch.tensor([1, 2])),
    "seed_ignored_native": seeds_matter,
    "uniform_includes_one": ends_are_in_range,
    "dropout_not_scaled": dropout_keeps_the_sum,
    "nonzero_transposed": lambda: check(torch.nonzero, values(2, 3, seed=2)),
    "bounds_not_checked": lambda: check(torch.gather, values(3, 2)[:2], 0, torch.tensor([[2, 2]])),
}


@pytest.mark.parametrize("name", WITNESSES)
def test_a_comparison_with_cpu_fails_while_an_index_fault_is_awake(name: str) -> None:
    witness = WITNESSES[name]
    witness()
    with fault(name), pytest.raises(AssertionError):
        witness()
