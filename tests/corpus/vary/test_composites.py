"""Samples of composite overloads, for backends that have their own kernel for such an overload."""

from __future__ import annotations

from typing import Any

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary.composites import generate
from conformance.corpus.vary.variants import generate as of_variants
from tests.by_hand import found_by
from tests.generated import corpus, made_by

TILE = 128
linear = torch.ops.aten.linear.default


def made() -> list[Sample]:
    return [s for s in made_by(generate, "linear") if s.base == "float32" and not s.raises]


def recorded() -> list[Sample]:
    return [s for s in corpus().samples("linear") if s.base == "float32" and not s.raises]


def test_they_are_a_few_of_sizes_values_and_arguments_for_own_kernels_alone() -> None:
    found = made_by(generate, "hstack")
    assert {s.axis for s in found} == {"sizes", "values", "variants"}
    assert all(s.own_kernel for s in found)
    assert len(found) <= 80


def test_other_overloads_have_none() -> None:
    assert not made_by(generate, "addmm")


def test_a_call_that_is_tried_where_the_overload_is_composite_is_none_of_them() -> None:
    anyway = {s.name for s in made_by(of_variants, "linear")}
    assert anyway
    assert anyway.isdisjoint(s.name for s in made_by(generate, "linear"))


def test_a_composite_that_is_wrong_past_a_tile_is_found() -> None:
    def first_tile(x: torch.Tensor, weight: torch.Tensor, *bias: Any) -> torch.Tensor:
        return linear(x[..., :TILE], weight[..., :TILE], *bias)

    judged, found = found_by(made(), linear, first_tile)
    assert found
    assert found_by(recorded(), linear, first_tile)[1] == set()
    assert found_by(made(), linear, linear) == (judged, set())


def test_a_composite_that_loses_nan_is_found() -> None:
    def without_nan(x: torch.Tensor, *others: Any) -> torch.Tensor:
        return linear(torch.where(x.isnan(), 0, x), *others)

    found = found_by(made(), linear, without_nan)[1]
    assert found
    assert {s.axis for s in made() if s.name in found} == {"values"}
    assert found_by(recorded(), linear, without_nan)[1] == set()


def test_tensors_keep_the_dtypes_that_they_have_in_a_source() -> None:
    given = {(t.name, t.dtype) for s in corpus().samples("nll_loss") for t in s.tensors}
    assert ("target", "int64") in given
    assert {(t.name, t.dtype) for s in made_by(generate, "nll_loss") for t in s.tensors} <= given
