"""The changed arguments with which the judge checks CPU's result."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import pytest
import torch

from conformance.judging import altered
from conformance.judging.twins import CPU, Twins
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.judging.test_twins import SINGLE, one_argument, two_arguments
from tests.samples import sample, slot
from tests.two_sides import behind, value_of


def test_a_dense_side_has_the_same_values_in_contiguous_tensors() -> None:
    case = one_argument("neg")
    (made,) = altered.dense(Twins(value_of), case).args
    assert made.is_contiguous()
    assert not made.is_neg()
    assert torch.equal(made, value_of(case.sample.tensors[0], "float32"))


def test_a_spaced_side_has_the_same_values_in_every_second_element() -> None:
    for layout in ("contiguous", "neg", "zero_dim"):
        case = one_argument(layout)
        (plain,), (made,) = Twins(value_of).side(case, CPU).args, altered.spaced(Twins(value_of), case).args
        assert torch.equal(made, plain.resolve_neg())
        assert not made.is_neg()
        assert made.untyped_storage().nbytes() == 2 * plain.numel() * plain.element_size()


@pytest.mark.parametrize("layout", SINGLE)
def test_a_surrounded_side_differs_only_in_the_bytes_behind_its_storages(layout: str) -> None:
    case = one_argument(layout)
    (plain,) = Twins(value_of).side(case, CPU).args
    for value in (0, 1, nan):
        (made,) = altered.surrounded(Twins(value_of), case, value).args
        assert torch.equal(made, plain)
        assert (made.stride(), made.storage_offset(), made.is_neg()) == (
            plain.stride(),
            plain.storage_offset(),
            plain.is_neg(),
        )
        assert made.untyped_storage().nbytes() == plain.untyped_storage().nbytes()
        if plain.numel():
            assert isnan(behind(made)) if isnan(value) else behind(made) == value


def test_a_write_behind_a_storage_is_an_overrun() -> None:
    (made,) = altered.surrounded(Twins(value_of), one_argument("contiguous"), 7).arguments
    assert not made.overrun
    assert made.room is not None
    made.room[0] ^= 1
    assert made.overrun


def test_matrices_that_are_spaced_by_the_stride_of_a_dimension_of_one_end_within_the_room() -> None:
    one = sample("tril_", slot(0, "self", (3, 1, 2, 2), written=True))
    (case, *_) = cases(CellId("f", one.overload, "float32", "as_strided"), [one])
    far = replace(case.placements[0], size=(3, 1, 2, 2), stride=(4, 500, 2, 1), offset=0, storage=12)
    (made,) = altered.roomy(Twins(value_of), replace(case, placements=(far,))).arguments
    assert made.room is not None
    assert made.room.numel() >= (3 * 500 + 4) * made.tensor.element_size()


def test_a_surrounded_side_keeps_shared_storages_shared() -> None:
    a, b = altered.surrounded(Twins(value_of), two_arguments("aliased", "self=other"), 1).args
    assert a is b
    a, b = altered.surrounded(Twins(value_of), two_arguments("aliased", "self~other"), 1).args
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert (a.storage_offset(), b.storage_offset()) == (0, 1)


def test_arguments_without_a_value_are_zeroed() -> None:
    one = sample("neg.out", slot(0, "self", (3,)), replace(slot(1, "out", (3,), written=True), pool=""))
    (case, *_) = cases(CellId("f", "neg.out", "float32", "contiguous"), [one])
    values, out = altered.zeroed(Twins(value_of), case).arguments
    assert values.tensor.tolist() == [1, 2, 3]
    assert out.tensor.tolist() == [0, 0, 0]
