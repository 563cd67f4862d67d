"""Samples whose indices name one element many times, in calls that add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary.arguments import by_name
from conformance.corpus.vary.repeats import FILLS, SIZES, generate
from conformance.corpus.vary.sizes import generate as of_sizes
from conformance.inventory import call_of
from conformance.torch_versions import schema_of
from tests.by_hand import found_by
from tests.generated import corpus, made_by

index_put_ = torch.ops.aten.index_put_.default


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def given(sample: Sample, name: str) -> object:
    return by_name(sample, schema_of(call_of(sample.overload)))[name]


def hits(sample: Sample) -> int:
    """Return how often an index tensor of a sample names the same element; for several, the smallest such count."""
    indices = (corpus().value(s, "float32") for s in sample.tensors if s.dtype in ("int64", "int32"))
    return min(int(i.unique(return_counts=True)[1].max()) for i in indices)


@pytest.mark.parametrize("overload", ["index_put_", "_unsafe_index_put", "put", "scatter_add_", "index_add"])
def test_an_element_is_named_by_all_indices_by_a_part_of_them_and_in_runs(overload: str) -> None:
    found = made(overload)
    assert {t.fill for s in found for t in s.tensors} >= set(FILLS)
    assert {max(t.shape) for s in found for t in s.tensors if t.dtype == "int64"} >= set(SIZES)
    assert min(map(hits, found)) >= min(SIZES) // 3


def test_a_call_adds_up_wherever_a_write_might_win() -> None:
    assert {given(s, "accumulate") for s in made("index_put_")} == {True}
    assert {given(s, "reduce") for s in made("scatter_.reduce")} == {"add"}
    assert not made("index_copy_")
    assert not made("scatter_.src")


def test_a_reduction_that_depends_on_the_order_is_left_out() -> None:
    assert {given(s, "reduce") for s in made("scatter_reduce.two")} == {"sum", "mean", "amax", "amin"}


def test_composite_ops_have_none() -> None:
    assert not made("gather_backward")


def lost_beyond(most: int) -> Any:
    """Return ``index_put_``, but add only the first ``most`` values for each index, and forget the others."""

    def op(x: torch.Tensor, indices: Sequence[Any], values: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
        if not accumulate or len(indices) != 1 or indices[0].dim() != 1 or values.dim() == 0:
            return index_put_(x, indices, values, accumulate)
        order = indices[0].sort(stable=True)
        seen = torch.arange(len(order.values)) - torch.searchsorted(order.values, order.values)
        kept = order.indices[seen < most]
        rows = values.expand(len(order.values), *values.shape[1:]) if values.dim() == x.dim() else values
        return index_put_(x, [indices[0][kept]], rows[kept] if rows.dim() == x.dim() else rows, accumulate)

    return op


@pytest.mark.parametrize("most", [32, 1000])
def test_a_segment_that_is_cut_is_found_by_these_samples_alone(most: int) -> None:
    of_floats = [s for s in made("index_put_") if s.base == "float32"]
    judged, found = found_by(of_floats, index_put_, lost_beyond(most))
    assert len(judged) == len(of_floats)
    assert {s.name for s in of_floats if hits(s) > most} == found
    before = [s for s in made_by(of_sizes, "index_put_") if s.base == "float32"]
    assert found_by(before, index_put_, lost_beyond(most))[1] == set()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
def test_another_order_of_the_sum_is_right(dtype: str) -> None:
    def backwards(x: torch.Tensor, indices: Sequence[Any], values: torch.Tensor, accumulate: bool) -> torch.Tensor:
        return index_put_(x, [i.flip(0) for i in indices], values.flip(0), accumulate)

    samples = [s for s in made("index_put_") if dtype in s.dtypes]
    assert found_by(samples, index_put_, backwards, dtype) == ({s.name for s in samples}, set())
