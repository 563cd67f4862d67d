"""Samples scaled to a number of elements, on CPU alone."""

from __future__ import annotations

import pytest

from conformance.corpus import reader
from conformance.perf import sizing
from conformance.perf.model import Size
from conformance.perf.sizing import MOST_FLOPS, Extent, Sizer, Unsuitable, factor, suitable


@pytest.fixture(scope="module")
def corpus() -> reader.Corpus:
    return reader.load(generated=False)


def elements(corpus: reader.Corpus, overload: str, size: Size) -> int:
    sizer = Sizer(corpus, "float32")
    found = sizer.extent(sizer.at(corpus.recorded(overload), size))
    assert found
    return found.elements


@pytest.mark.parametrize("overload", ["neg", "add.Tensor", "_softmax", "neg.out", "exp_", "index_select", "zeros"])
def test_an_op_has_samples_of_about_each_size(corpus: reader.Corpus, overload: str) -> None:
    for size in (Size.SMALL, Size.MEDIUM):
        assert size.elements / 4 <= elements(corpus, overload, size) <= 4 * size.elements


def test_all_free_sizes_of_a_product_grow_together(corpus: reader.Corpus) -> None:
    sample = Sizer(corpus, "float32").at(corpus.recorded("mm"), Size.MEDIUM)
    (rows, depth), (_, columns) = (slot.shape for slot in sample.tensors)
    assert max(rows, depth, columns) < 4 * min(rows, depth, columns)


def test_the_same_sample_is_found_each_time(corpus: reader.Corpus) -> None:
    once, again = (Sizer(corpus, "float32").at(corpus.recorded("addmm"), Size.MEDIUM) for _ in range(2))
    assert once == again


def test_a_call_that_changes_the_next_one_is_unsuitable(corpus: reader.Corpus) -> None:
    """unsqueeze_ adds a dimension to its argument with each call."""
    with pytest.raises(Unsuitable, match="refuses to repeat"):
        Sizer(corpus, "float32").at(corpus.recorded("unsqueeze_"), Size.SMALL)


def test_an_op_of_another_dtype_is_unsuitable(corpus: reader.Corpus) -> None:
    with pytest.raises(Unsuitable, match="no sample runs in float32"):
        Sizer(corpus, "float32").at(corpus.recorded("bitwise_not"), Size.SMALL)
    assert suitable(corpus.recorded("bitwise_not"), "int64")


def test_an_op_whose_values_cannot_be_made_is_unsuitable(
    corpus: reader.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError("trunc is not implemented for Float8_e4m3fn")

    monkeypatch.setattr(sizing, "filled", refuse)
    with pytest.raises(Unsuitable, match="values of its sample cannot be made: trunc is not"):
        Sizer(corpus, "float32").at(corpus.recorded("neg"), Size.MEDIUM)


def test_a_factor_follows_the_growth_that_was_measured() -> None:
    """The elements of a matrix grow with the square of its side, and the operations of a product with its cube."""
    own, more = Extent(100, 400, 0), Extent(400, 1600, 0)
    assert factor(own, more, 1_000_000) == pytest.approx(100)
    product, twice = Extent(100, 400, 2000), Extent(400, 1600, 16_000)
    assert factor(product, twice, 100_000_000) == pytest.approx((MOST_FLOPS / 2000) ** (1 / 3))


def test_a_result_that_grows_faster_than_the_arguments_bounds_them() -> None:
    """The result of an outer product is the largest tensor, so its elements count."""
    own, more = Extent(25, 140, 0), Extent(100, 480, 0)
    assert factor(own, more, 2500) == pytest.approx(10)
