"""Samples with an empty tensor in lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary import empty_in_lists, sizes
from tests.generated import corpus, failing, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(empty_in_lists.generate, overload)


def empties(sample: Sample) -> list[str]:
    return [s.name for s in sample.tensors if s.pool and not s.numel]


def test_each_list_has_an_empty_tensor_at_the_same_place() -> None:
    found = [empties(s) for s in made("_foreach_add_.List")]
    for at in (0, 2, 4):
        assert [f"self[{at}]", f"other[{at}]"] in found
    assert [s for s in made("_foreach_add_.List") if len(s.tensors) == 2 and not any(t.numel for t in s.tensors)]


def test_tensors_without_dimensions_stay() -> None:
    found = made("_fused_adam_")
    assert found
    assert not any("state_steps" in name for s in found for name in empties(s))


def test_a_vector_of_numbers_has_one_for_each_tensor() -> None:
    found = made("_foreach_addcmul.Tensor")
    assert {s.tensors[-1].shape for s in found} == {(5,), (1,)}
    assert all(s.tensors[-1].name == "scalars" for s in found)


def test_a_tensor_is_empty_where_the_op_joins() -> None:
    assert any(t.numel == 0 and t.shape[0] for s in made("cat") for t in s.tensors)


def test_composite_ops_and_ops_without_lists_have_none() -> None:
    assert not made("broadcast_tensors")
    assert not made("add.Tensor")


def add_but_before_empty_ones(self: Sequence[torch.Tensor], other: Sequence[torch.Tensor], **named: Any) -> None:
    """Add to all tensors but the last one with elements, if empty ones are behind it."""
    torch._foreach_add_(self, other, **named)
    full = [i for i, t in enumerate(self) if t.numel()]
    if full and full[-1] < len(self) - 1:
        self[full[-1]].sub_(other[full[-1]], **named)


def test_an_op_that_launches_its_last_chunk_with_the_last_tensor_is_found_by_these_alone() -> None:
    op, overload = torch.ops.aten._foreach_add_.List, "_foreach_add_.List"
    assert not failing(op, add_but_before_empty_ones, [*corpus().samples(overload), *made_by(sizes.generate, overload)])
    assert failing(op, add_but_before_empty_ones, made(overload))
    assert not failing(op, op, made(overload))
