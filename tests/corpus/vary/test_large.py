"""Samples with another argument and a large size."""

from __future__ import annotations

from itertools import product

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.vary.large import SIZES, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_each_has_a_large_size() -> None:
    found = made("topk")
    assert found
    assert all(max(s.tensors[0].shape) in SIZES for s in found)
    assert {max(s.tensors[0].shape) for s in found} == set(SIZES)


@pytest.mark.parametrize("descending", [False, True])
def test_a_flag_is_tried_both_ways(descending: bool) -> None:
    assert any(s.args[2:] == (descending,) for s in made("sort"))


def test_each_dimension_is_named_beside_a_large_first_and_a_large_last_one() -> None:
    found = [s for s in made("_softmax") if len(s.tensors[0].shape) == 3]
    named = {(s.args[1], s.tensors[0].shape.index(max(s.tensors[0].shape))) for s in found}
    assert set(product((0, 1, 2), (0, 2))) - named <= {(1, 0), (1, 2)}  # the recorded sample names dimension 1


def test_an_operand_has_another_dtype_or_is_a_scalar() -> None:
    found = [s for s in made("add.Tensor") if s.base == "float32"]
    others = {(s.tensors[1].dtype, s.tensors[1].shape == ()) for s in found}
    assert {("float64", False), ("bool", False), (None, True)} <= others


@pytest.mark.parametrize(("overload", "argument"), [("_to_copy", "dtype"), ("copy_", "src")])
def test_a_copy_is_large_in_conversions_to_elements_of_each_size(overload: str, argument: str) -> None:
    found = {s.name.partition(f".{argument}=")[2].partition(".")[0] for s in made(overload)}
    assert {"uint8", "int8", "int16", "float32", "float64", "complex128"} <= found


def test_dimensions_are_counted_from_the_front() -> None:
    assert all(s.args[1] >= 0 for s in made("cumsum") if isinstance(s.args[1], int))


def test_arguments_that_may_not_be_changed_are_left() -> None:
    assert "sorted=" not in " ".join(s.name for s in made("topk"))


def test_composite_ops_have_none() -> None:
    assert not made("einsum")


def test_an_op_that_adds_up_has_half_precision_beside_every_dtype() -> None:
    found = [s for s in made("var.correction") if s.base == "float32"]
    assert found
    assert all({"bfloat16", "float16"} & set(s.dtypes) for s in found)
