"""Samples in which images of one batch have very different magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary.magnitudes import generate
from tests.by_hand import found_by
from tests.generated import corpus, made_by

convolution = torch.ops.aten.convolution.default
bmm = torch.ops.aten.bmm.default


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_every_other_image_is_thousands_of_times_larger() -> None:
    for sample in made("convolution"):
        (scaled,) = [s for s in sample.tensors if s.fill]
        largest = corpus().value(scaled, "float32").abs().flatten(1).amax(1).tolist()
        assert min(largest[::2]) > 500 * max(largest[1::2])


def test_each_of_two_arguments_is_scaled_alone_and_in_half_precision_too() -> None:
    found = made("bmm")
    assert {s.name.rsplit(".", 2)[1] for s in found} == {"self", "mat2"}
    assert {s.dtypes for s in found} == {("float32", "bfloat16", "float16")}
    assert {s.axis for s in found} == {"values"}


def test_rows_of_a_matrix_that_is_solved_stay_as_they_are() -> None:
    assert all(len(s.shape) > 2 for one in made("linalg_inv_ex") for s in one.tensors if s.fill)
    assert any(len(s.shape) == 2 for one in made("mm") for s in one.tensors if s.fill)


@pytest.mark.parametrize("overload", ["add.Tensor", "cat", "bernoulli", "matmul"])
def test_ops_without_rounding_over_an_image_have_none(overload: str) -> None:
    assert not made(overload)


def shared(op: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return ``op``, but with a finite first argument rounded to 12-bit integers with one shared scale."""

    def wrong(x: torch.Tensor, *more: Any, **kwargs: Any) -> torch.Tensor:
        if not (x.numel() and bool(x.isfinite().all()) and bool(x.any())):
            return op(x, *more, **kwargs)
        scale = x.double().abs().max() / 2**11
        return op(((x.double() / scale).round() * scale).to(x.dtype), *more, **kwargs)

    return wrong


@pytest.mark.parametrize(("overload", "op"), [("convolution", convolution), ("bmm", bmm)])
def test_a_scale_that_all_images_share_is_found_by_these_alone(overload: str, op: Any) -> None:
    others = [s for s in reader.load().samples(overload) if s.axis in ("", "values") and not s.raises]
    others = [s for s in others if "bfloat16" in s.dtypes and not s.name.endswith(".magnitudes")]
    assert others
    assert not found_by(others, op, shared(op), "bfloat16")[1]
    assert found_by(made(overload), op, shared(op), "bfloat16")[1]
    assert not found_by(made(overload), op, op, "bfloat16")[1]
