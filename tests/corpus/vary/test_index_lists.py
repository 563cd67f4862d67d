"""Lists of indices: the dimensions that have an index, and the shapes of the indices."""

from __future__ import annotations

import pytest
import torch

from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.vary.index_lists import EQUAL, LISTS, MASKS_OF_EQUAL, ON_HOST, SHAPE, generate
from tests.by_hand import found_by
from tests.generated import corpus, made_by

LAST_ON_HOST = ("apart_behind_last_on_host", "crossed_last_on_host")


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_indices_stand_apart_and_side_by_side_and_behind() -> None:
    lists = [s.args[1] for s in made("index.Tensor_out") if s.base == "float32"]
    given = {tuple(a is not None for a in one) for one in lists if isinstance(one, tuple)}
    assert {(True, False, True), (False, True, True), (False, False, False, True), (True,) * 4} <= given


def test_indices_of_several_shapes_are_broadcast() -> None:
    shapes = {tuple(t.shape for t in s.tensors if t.dtype == "int64") for s in made("index.Tensor_out")}
    assert {((3, 1), (2,)), ((2,), (3, 1)), ((), (3,)), ((2, 3),)} <= shapes


def test_masks_take_one_dimension_or_several() -> None:
    masks = {t.shape for s in made("index.Tensor_out") for t in s.tensors if t.dtype == "bool" and t.name != "self"}
    assert {SHAPE[:1], SHAPE[1:2], SHAPE[:2], SHAPE[2:], SHAPE} <= masks


def test_a_number_is_put_to_masks_that_fit_other_dimensions_too() -> None:
    found = {s.name.partition("indices=")[2]: s for s in made("_index_put_impl_") if s.base == "float32"}
    one = found["mask_of_first_equal.broadcast.accumulate=False"]
    assert [t.shape for t in one.tensors] == [EQUAL, EQUAL[:1], ()]
    assert {name.partition(".")[0] for name in found} >= set(MASKS_OF_EQUAL)


@pytest.mark.parametrize("overload", ["index_put", "_index_put_impl_"])
def test_what_is_read_is_written_and_added_and_what_is_less_is_broadcast(overload: str) -> None:
    found = [s for s in made(overload) if ".indices=apart" in s.name and s.base == "float32"]
    assert {s.args[3] for s in found} == {False, True}
    values = {s.tensors[-1].shape for s in found if ".indices=apart." in s.name}
    assert (3, SHAPE[1], SHAPE[3]) in values
    assert len(values) == 2


def indices_of(sample: Sample) -> list[TensorSlot]:
    return [t for t in sample.tensors if t.argument == "indices" and t.dtype == "int64"]


def test_no_element_is_named_twice_and_every_other_one_from_the_end() -> None:
    for sample in made("index_put"):
        for slot in indices_of(sample):
            size = int(slot.fill.removeprefix("around/"))
            index = corpus().value(slot, "float32").flatten()
            assert len(set((index % size).tolist())) == index.numel()
            assert (index < 0).tolist() == [bool(n % 2) for n in range(index.numel())]


def test_a_second_index_that_is_counted_from_the_end_of_the_first_dimension_is_found() -> None:
    right = torch.ops.aten.index.Tensor

    def wrong(x: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
        given = [i for i in indices if i is not None]
        wraps = len(given) > 1 and x.size(0) != x.size(1) and bool((given[1] < 0).any())
        return right(x, indices).flip(0) if wraps else right(x, indices)

    assert found_by(made("index.Tensor"), right, wrong, "float32")[1]
    assert not found_by(made("index.Tensor"), right, right, "float32")[1]


def test_every_list_runs_on_cpu() -> None:
    found = {s.name.partition("indices=")[2] for s in made("index.Tensor_out") if s.base == "float32"}
    assert found == {*LISTS, *MASKS_OF_EQUAL, *(f"{name}_on_host" for name in ON_HOST), *LAST_ON_HOST}


@pytest.mark.parametrize("overload", ["index.Tensor_out", "index_put"])
def test_indices_are_on_the_host_all_of_them_or_the_last(overload: str) -> None:
    found = {s.name.partition("indices=")[2].partition(".")[0]: s for s in made(overload)}
    on_host = {name: [t.on_host for t in s.tensors if t.argument == "indices"] for name, s in found.items()}
    assert on_host["apart_behind"] == [False, False]
    assert on_host["apart_behind_on_host"] == [True, True]
    assert on_host["apart_behind_last_on_host"] == [False, True]
    assert on_host["mask_of_two_on_host"] == [True]
    assert not any(t.on_host for s in found.values() for t in s.tensors if t.argument != "indices")


def test_slots_are_numbered_in_the_order_of_the_arguments() -> None:
    for sample in made("index_put"):
        assert [t.index for t in sample.tensors] == list(range(len(sample.tensors)))
        assert isinstance(sample.args[0], TensorSlot)
        assert sample.args[0] is sample.tensors[0]


def test_an_op_without_a_list_of_indices_has_none() -> None:
    assert not made("gather.out")
    assert not made("neg")


def test_a_list_reads_as_many_elements_as_torch_says() -> None:
    apart = next(s for s in made("index_put") if ".indices=apart.accumulate=False" in s.name)
    index = torch.zeros(3, dtype=torch.int64)
    assert apart.tensors[-1].shape == torch.empty(SHAPE)[index, :, index].shape
    one = next(s for s in made("index_put") if s.name.endswith("indices=one_apart.accumulate=True"))
    assert one.tensors[-1].shape == (3, SHAPE[1], SHAPE[3])
