"""Samples with an empty tensor in a list of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary import empty_in_lists, sizes
from conformance.corpus.vary.empty_in_lists import LENGTH
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
    assert {s.tensors[-1].shape for s in found} >= {(LENGTH,), (1,)}
    assert all(s.tensors[-1].shape == (len(s.tensors) // 3,) for s in found)
    assert all(s.tensors[-1].name == "scalars" for s in found)


def test_a_tensor_is_empty_where_the_op_joins() -> None:
    assert any(t.numel == 0 and t.shape[0] for s in made("cat") for t in s.tensors)


def test_composite_ops_and_ops_without_lists_have_none() -> None:
    assert not made("broadcast_tensors")
    assert not made("add.Tensor")


def add_but_before_empty_ones(self: Sequence[torch.Tensor], other: Sequence[torch.Tensor], **named: Any) -> None:
    """Add to all tensors, except to the last tensor with elements if empty tensors follow it."""
    torch._foreach_add_(self, other, **named)
    full = [i for i, t in enumerate(self) if t.numel()]
    if full and full[-1] < len(self) - 1:
        self[full[-1]].sub_(other[full[-1]], **named)


def test_an_op_that_launches_its_last_chunk_with_the_last_tensor_is_found_by_these_alone() -> None:
    op, overload = torch.ops.aten._foreach_add_.List, "_foreach_add_.List"
    assert not failing(op, add_but_before_empty_ones, [*corpus().samples(overload), *made_by(sizes.generate, overload)])
    assert failing(op, add_but_before_empty_ones, made(overload))
    assert not failing(op, op, made(overload))


Lists = tuple[Sequence[torch.Tensor], ...]


def launched(lists: Lists, table: int, *, drops: bool = True) -> list[list[int]]:
    """Return the indices of the tensors in each launch of a kernel whose table holds ``table`` tensors.

    ``drops``: whether the kernel drops empty tensors. The last launch, which may be smaller, takes place only if the
    last tensor of the list is not empty.
    """
    launches: list[list[int]] = []
    pending: list[int] = []
    for i, tensor in enumerate(lists[0]):
        pending += [] if drops and not tensor.numel() else [i]
        if len(pending) == table or (i == len(lists[0]) - 1 and tensor.numel()):
            launches.append(pending)
            pending = []
    return launches


def adding(table: int, *, again: bool = False, first: bool = False) -> Callable[..., None]:
    """Return a wrong ``_foreach_add_`` kernel, whose table holds ``table`` tensors.

    By default, if the last tensor is empty, the kernel forgets the tensors that do not fill a table. With ``again``, it
    launches a full last table twice in that case. With ``first``, it skips a table whose first tensor is empty.
    """

    def add(self: Sequence[torch.Tensor], other: Sequence[torch.Tensor], **named: Any) -> None:
        launches = launched((self, other), table, drops=not first)
        if again or first:
            pending = sorted({*range(len(self))} - {i for launch in launches for i in launch})
            launches += [pending] if any(self[i].numel() for i in pending) else []
        if again and not self[-1].numel() and launches and len(launches[-1]) == table:
            launches.append(launches[-1])
        for launch in launches:
            if not first or self[launch[0]].numel():
                torch._foreach_add_([self[i] for i in launch], [other[i] for i in launch], **named)

    return add


@pytest.mark.parametrize("table", [2, 3, 4, 8])
@pytest.mark.parametrize("fault", [{}, {"again": True}, {"first": True}], ids=str)
def test_a_mistake_behind_full_tables_of_any_size_is_found(table: int, fault: dict[str, bool]) -> None:
    op, overload = torch.ops.aten._foreach_add_.List, "_foreach_add_.List"
    long = [s for s in made(overload) if len(s.tensors) > 2 * LENGTH]
    assert [len(s.dtypes) for s in long] == [1, 1]
    assert failing(op, adding(table, **fault), long)
    assert not failing(op, op, long)


def test_a_list_of_one_tensor_beside_another_vector_of_one_element_grows_alone() -> None:
    found = [s for s in made("_amp_foreach_non_finite_check_and_unscale_") if "infinite" in s.name]
    assert {s.name.rpartition("=")[2] for s in found} == {"all", "first", "middle", "last"}
    assert all(t.shape == (1,) for s in found for t in s.tensors if t.name in ("found_inf", "inv_scale"))


def test_a_list_of_matrices_has_an_empty_vector_where_cpu_takes_it() -> None:
    found = [s for s in made("cat") if ".vector=first" in s.name]
    assert found
    assert all(s.tensors[0].shape == (0,) and len(s.tensors[1].shape) > 1 for s in found)
    assert not [s for s in made("stack") if ".vector=" in s.name]
