"""Vectors for overloads that were recorded with more dimensions."""

from __future__ import annotations

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.vary.vectors import SIZES, generate
from tests.generated import corpus, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_a_dimension_that_is_named_is_the_first_and_the_last_one() -> None:
    found = [s for s in made("topk") if s.base == "int64" and s.tensors[0].numel < min(SIZES)]
    assert {(s.tensors[0].shape, s.args[2]) for s in found} == {((5,), 0), ((5,), -1)}


def test_a_vector_of_an_op_that_is_not_pointwise_is_also_long() -> None:
    assert {s.tensors[0].numel for s in made("topk")} == {5, *SIZES}
    assert max(t.numel for s in made("asin") for t in s.tensors) < min(SIZES)


def test_a_vector_of_bools_is_tried_beside_those_of_other_dtypes() -> None:
    assert {s.base for s in made("sort.values_stable")} == {"float32", "int64", "bool"}


def test_indices_stay_few_and_name_elements_of_the_vector() -> None:
    assert made("index.Tensor")
    for sample in made("index.Tensor"):
        size = sample.tensors[0].numel
        for slot in (t for t in sample.tensors if t.dtype == "int64"):
            found = corpus().value(slot, "int64")
            assert -size <= int(found.min()) <= int(found.max()) < size
            assert found.numel() < min(SIZES)


def test_a_list_of_dimensions_names_the_one() -> None:
    named = {s.args[1] for s in made("sum.IntList_out") if len(s.args) > 1 and isinstance(s.args[1], tuple)}
    assert (0,) in named


@pytest.mark.parametrize("overload", ["add.Tensor", "bmm"])
def test_an_op_that_has_vectors_or_takes_none_gets_none(overload: str) -> None:
    assert not made(overload)


def test_an_op_that_was_recorded_without_dimensions_gets_vectors() -> None:
    shapes = {s.tensors[0].shape for s in made("scatter.value_reduce")}
    assert {(1,), *((n,) for n in SIZES)} <= shapes
