"""Samples with a long dimension beside whole tiles, and with millions of elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg, Sample
from conformance.corpus.vary.largest import FEWER, LONG, MANY, MOST_ELEMENTS, TILE, generate
from conformance.corpus.vary.trial import Trials
from conformance.inventory import call_of, inventory
from conformance.judging.tolerances import criteria_of
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.generated import corpus
from tests.two_sides import judge


def made(overload: str) -> list[Sample]:
    (known,) = (o for o in inventory("CPU") if o.name == overload)
    return list(generate(known, corpus().samples(overload), Trials(corpus(), timed=False), corpus()))


def shapes(sample: Sample) -> list[tuple[int, ...]]:
    return [slot.shape for slot in sample.tensors]


def test_factors_share_a_long_dimension_beside_more_than_a_tile() -> None:
    found = [s for s in made("mm") if shapes(s) == [(TILE, LONG), (LONG, TILE)]]
    assert found
    assert {s.axis for s in found} == {"large"}
    assert all(len(s.dtypes) == 2 and s.dtypes[0] == "float32" for s in found)


@pytest.mark.parametrize("overload", ["bmm.out", "baddbmm.out"])
def test_a_sum_in_batches_is_long_beside_tiles_of_both_other_sizes(overload: str) -> None:
    found = [shapes(s)[-3:] for s in made(overload) if s.name.endswith(".summed")]
    assert [(1, TILE, LONG), (1, LONG, TILE), (1, TILE, TILE)] in found


def test_a_pointwise_op_has_one_sample_of_many_elements() -> None:
    (sample,) = made("exp")
    assert sample.dtypes == ("float32",)
    assert 0.99 * MANY <= sample.tensors[0].numel <= 1.01 * MANY
    assert sample.tensors[0].numel % 2


@pytest.mark.parametrize("overload", ["mul.Tensor", "maximum", "atan2", "where.self"])
def test_the_arguments_of_a_pointwise_op_have_one_shape_of_many_elements(overload: str) -> None:
    (sample,) = made(overload)
    assert len(set(shapes(sample))) == 1
    assert min(0.99 * MANY, 0.99 * MOST_ELEMENTS / len(shapes(sample))) <= sample.tensors[0].numel <= 1.01 * MANY


def test_all_arguments_together_have_no_more_than_memory_is_meant_for() -> None:
    for overload in ("add.Tensor", "addcmul", "cat"):
        assert all(sum(slot.numel for slot in s.tensors) <= MOST_ELEMENTS for s in made(overload))


def test_an_op_whose_first_sample_cannot_grow_has_another_one() -> None:
    (sample,) = made("hypot")
    assert sample.tensors[0].numel > 0.99 * FEWER


def test_arguments_of_one_size_are_together_no_larger_than_others() -> None:
    found = made("native_layer_norm")
    assert any(LONG in s.tensors[0].shape for s in found)
    assert any(sum(slot.numel for slot in s.tensors) > 0.9 * MOST_ELEMENTS for s in found)


def test_a_size_that_is_no_tensors_is_large_too() -> None:
    (sample,) = made("logspace.out")
    assert MANY in sample.args


def differs(overload: str, sample: Sample, wrong: Callable[..., Any]) -> bool:
    """Return whether a device with the ``wrong`` op differs in a sample."""
    sample = replace(sample, args=(*sample.args, DeviceArg()))
    (case,) = cases(CellId("hand", "hand", "float32", "sizes_large"), [sample])
    right = call_of(overload)
    return bool(judge(right, wrong, case, criteria_of(overload), values=corpus().value).mismatches)


def test_a_product_that_drops_the_last_tile_of_a_long_dimension_is_found() -> None:
    def without_tail(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        kept = a.shape[1] - 9 if a.shape[1] > 2**15 and min(a.shape[0], b.shape[1]) > 16 else a.shape[1]
        return torch.mm(a[:, :kept], b[:kept])

    (sample,) = (s for s in made("mm") if shapes(s) == [(TILE, LONG), (LONG, TILE)])
    assert differs("mm", sample, without_tail)
    assert not differs("mm", sample, torch.mm)


def test_a_product_of_batches_that_drops_the_last_tile_of_a_long_sum_is_found() -> None:
    def without_tail(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        kept = a.shape[2] - 9 if a.shape[2] > 2**15 and min(a.shape[1], b.shape[2]) > 16 else a.shape[2]
        return torch.bmm(a[..., :kept], b[:, :kept], out=out)

    found = [s for s in made("bmm.out") if differs("bmm.out", s, without_tail)]
    assert found
    assert all(s.name.endswith(".summed") for s in found)
    assert not any(differs("bmm.out", s, call_of("bmm.out")) for s in found)


def test_a_block_that_repeats_its_first_round_in_its_second_is_found() -> None:
    def repeated(x: torch.Tensor) -> torch.Tensor:
        found = torch.exp(x).view(-1)
        found[2_000_000:2_000_100] = found[:100].clone()
        return found.view(x.shape)

    (sample,) = made("exp")
    assert differs("exp", sample, repeated)
    assert not differs("exp", sample, torch.exp)
