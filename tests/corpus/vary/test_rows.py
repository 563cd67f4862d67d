"""Samples of long rows of padding, and of rows that lie far from zero."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.reader import load
from conformance.corpus.vary.rows import LENGTH, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def fills(samples: tuple[Sample, ...]) -> set[str]:
    return {s.tensors[0].fill for s in samples}


def test_each_dimension_is_long_with_each_padding_of_its_kind() -> None:
    found = made("_softmax")
    assert all(LENGTH in s.tensors[0].shape for s in found)
    assert fills(found) == {"hard/rare/0", "hard/rare/-inf", "hard/offset"}
    assert {s.tensors[0].shape.index(LENGTH) for s in found if s.tensors[0].fill == "hard/rare/-inf"} >= {0, 1, 2}


def test_bools_are_padded_with_each_of_the_two() -> None:
    found = [s for s in made("max") if s.base == "bool"]
    assert fills(tuple(found)) == {"hard/rare/0", "hard/rare/1"}


def test_most_of_a_row_is_padding_and_what_is_not_is_behind_the_first_block_of_some_row() -> None:
    (sample, *_) = (
        s for s in made("_softmax") if s.tensors[0].fill == "hard/rare/-inf" and s.tensors[0].shape[-1] == LENGTH
    )
    rows = load().value(sample.tensors[0], "float32").view(-1, LENGTH)
    padding = rows.isinf()
    assert padding.float().mean() > 0.95
    assert bool((padding[:, :128].all(1) & ~padding.all(1)).any())


def test_rows_that_lie_far_from_zero_have_no_place_in_exact_ops() -> None:
    assert "hard/offset" not in fills(made("max.dim"))
    assert "hard/offset" in fills(made("var.correction"))


def test_a_sum_in_double_precision_has_none_since_nothing_is_wider() -> None:
    assert not [s.name for s in made("var.correction") if "float64" in s.dtypes]
    assert [s.name for s in made("max.dim") if "float64" in s.dtypes]


def test_pointwise_and_composite_ops_have_none() -> None:
    assert not made("add.Tensor")
    assert not made("einsum")
