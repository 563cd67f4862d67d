"""Samples of images and volumes with many channels."""

from __future__ import annotations

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.vary.channels import generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def images(overload: str, rank: int = 4) -> set[tuple[int, ...]]:
    return {s.tensors[0].shape for s in made(overload) if len(s.tensors[0].shape) == rank}


@pytest.mark.parametrize("overload", ["convolution", "native_batch_norm", "max_pool2d_with_indices", "add.Tensor"])
def test_images_have_whole_vectors_of_channels_and_others(overload: str) -> None:
    assert images(overload) >= {(2, 33, 5, 7), (3, 64, 9, 8)}


def test_volumes_have_their_own_sizes() -> None:
    assert images("max_pool3d_with_indices", 5) == {(2, 33, 3, 5, 4), (2, 64, 3, 4, 5)}


def test_what_belongs_to_the_channels_grows_with_them() -> None:
    found = [s for s in made("native_batch_norm") if len(s.tensors[0].shape) == 4]
    assert {s.tensors[1].shape for s in found} == {(33,), (64,)}


def test_a_sample_runs_in_its_first_dtype_and_in_one_half_precision() -> None:
    assert {s.dtypes for s in made("convolution")} == {("float32", "bfloat16")}
    assert {s.axis for s in made("convolution")} == {"sizes"}


@pytest.mark.parametrize("overload", ["sort.values_stable", "linalg_vector_norm.out", "_softmax.out"])
def test_an_op_that_takes_images_but_was_recorded_without_has_some(overload: str) -> None:
    assert images(overload) == {(2, 33, 5, 7), (3, 64, 9, 8)}


def test_an_op_that_takes_no_images_has_none() -> None:
    assert not made("mm")
    assert not made("arange")
