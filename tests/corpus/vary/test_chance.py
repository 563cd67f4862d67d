"""Samples that enlarge sizes which are 1, or which equal other sizes by chance."""

from __future__ import annotations

from typing import Any

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary import chance, sizes
from tests.generated import corpus, failing, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(chance.generate, overload)


def test_a_batch_grows_that_is_as_large_as_the_number_of_groups() -> None:
    found = [s.tensors for s in made("native_group_norm_backward")]
    assert {grad_out.shape[0] for grad_out, *_ in found} >= set(chance.SIZES)
    assert all({t.shape[0] for t in (x, mean, rstd)} == {grad.shape[0]} for grad, x, mean, rstd, *_ in found)


def test_a_batch_of_one_grows() -> None:
    found = [s.tensors[0].shape for s in made("replication_pad1d_backward")]
    assert {shape[0] for shape in found if len(shape) == 3} >= set(chance.SIZES)


def test_channels_stay_a_multiple_of_what_they_are_one_of() -> None:
    found = {s.tensors[0].shape[1] for s in made("pixel_shuffle") if len(s.tensors[0].shape) == 4}
    assert len(found) > 1


def test_sizes_that_grow_together_are_left_to_others() -> None:
    assert not [s for s in made("bmm") if s.base == "float32"]


def test_pointwise_and_composite_ops_have_none() -> None:
    assert not made("add.Tensor")
    assert not made("einsum")


def of_three_images(*given: Any) -> tuple[torch.Tensor, ...]:
    """Return the gradients of group_norm, with zeros for the fourth and later images in the input's gradient."""
    found: tuple[torch.Tensor, ...] = torch.ops.aten.native_group_norm_backward.default(*given)
    found[0][3:] = 0
    return found


def test_an_op_that_computes_three_images_is_found_by_these_alone() -> None:
    op, overload = torch.ops.aten.native_group_norm_backward.default, "native_group_norm_backward"
    assert not failing(op, of_three_images, [*corpus().samples(overload), *made_by(sizes.generate, overload)])
    assert failing(op, of_three_images, made(overload))
    assert not failing(op, op, made(overload))
