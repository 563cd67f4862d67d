"""Sizes that differ by a fixed number."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.vary.apart import SIZES, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_a_gradient_of_padded_rows_stays_longer_by_the_padding() -> None:
    found = [s.tensors for s in made("reflection_pad1d_backward") if len(s.tensors[0].shape) == 3]
    assert {gradient.shape[-1] for gradient, _ in found} >= set(SIZES)
    assert {gradient.shape[-1] - row.shape[-1] for gradient, row in found} == {1}


def test_beside_a_large_size_the_others_are_one() -> None:
    large = [s.tensors[0] for s in made("reflection_pad1d_backward") if s.tensors[0].shape[-1] == max(SIZES)]
    assert large
    assert all(gradient.numel == max(SIZES) for gradient in large)


def test_sizes_that_agree_or_are_broadcast_are_left_to_others() -> None:
    assert not made("add.Tensor")
    assert not made("bmm")
