"""Samples in dtypes that no recorded sample has."""

from __future__ import annotations

from conformance.corpus.vary.dtypes import generate
from tests.generated import corpus, made_by


def test_kinds_that_opinfo_does_not_list_are_tried() -> None:
    (found,) = made_by(generate, "nan_to_num.out")
    assert (found.base, found.dtypes) == ("complex64", ("complex64", "complex128"))


def test_a_sample_of_several_elements_is_tried_before_one_of_a_number() -> None:
    (found,) = made_by(generate, "nan_to_num.out")
    assert any(s.tensors[0].numel == 1 for s in corpus().samples("nan_to_num.out"))
    assert found.tensors[0].numel > 1


def test_a_number_is_tried_where_a_tensor_does_not_run() -> None:
    (found,) = made_by(generate, "cumprod.out")
    assert (found.dtypes, found.tensors[0].shape) == (("bool",), ())


def test_floats_that_are_made_of_integers_are_no_whole_numbers() -> None:
    found = next(s for s in made_by(generate, "scatter.reduce_out") if s.base == "float32")
    value = corpus().value(found.tensors[0], "float32")
    assert value.numel()
    assert (value != value.trunc()).all()


def test_dtypes_that_recorded_samples_have_are_not_tried_again() -> None:
    for overload in ("clamp.Tensor_out", "remainder.Tensor_out"):
        there = {d for s in corpus().samples(overload) if not s.raises for d in s.dtypes}
        made = [d for s in made_by(generate, overload) for d in s.dtypes]
        assert made
        assert not there & set(made)
        assert len(set(made)) == len(made)


def test_an_op_of_every_dtype_has_no_further_ones() -> None:
    assert not made_by(generate, "eq.Tensor_out")
