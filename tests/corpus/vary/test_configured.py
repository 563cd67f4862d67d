"""Samples of the configurations that ops/ describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance import ops
from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary.configured import generate
from conformance.ops.family import operator_of
from tests.by_hand import found_by
from tests.generated import corpus, made_by

convolution = torch.ops.aten.convolution.default
attention = torch.ops.aten.scaled_dot_product_attention.default


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def labels(names: set[str]) -> set[str]:
    return {name.split(".")[2] for name in names}


def test_every_configuration_is_in_the_corpus() -> None:
    described = {(own.overload, f"own.{family.name}.{own.label}") for family, own in ops.configurations()}
    overloads = {overload for overload, _ in described}
    kept = {(o, s.name.rpartition(".")[0]) for o in overloads for s in reader.load().samples(o) if s.axis}
    assert described - kept == set()


def test_configurations_are_kept_with_their_family() -> None:
    assert all(ops.family_of(operator_of(own.overload)) is family for family, own in ops.configurations())


def test_convolutions_have_groups_in_batches_of_each_rank() -> None:
    found = [s for s in made("convolution") if not s.args[6]]
    ranks = {(len(s.tensors[0].shape) - 2, s.args[8] != 1, s.args[8] == s.tensors[0].shape[1]) for s in found}
    assert ranks == {(rank, *groups) for rank in (1, 2, 3) for groups in ((False, False), (True, False), (True, True))}
    assert all(s.tensors[0].shape[0] > 1 for s in found)


def test_a_depthwise_kernel_that_reads_the_first_image_alone_is_found() -> None:
    def of_the_first(x: torch.Tensor, weight: torch.Tensor, *more: Any) -> torch.Tensor:
        depthwise = more[-1] == x.shape[1] > 1 and not more[4]  # not transposed
        return convolution(x[:1].expand_as(x) if depthwise else x, weight, *more)

    judged, found = found_by(made("convolution"), convolution, of_the_first)
    assert len(judged) == len(made("convolution"))
    depthwise = ("depthwise", "multiplier", "tiles_depthwise", "many_depthwise")
    assert labels(found) == {n for n in labels(judged) if n.startswith(depthwise)}
    recorded = [s for s in corpus().samples("convolution") if s.base == "float32" and not s.raises]
    assert found_by(recorded, convolution, of_the_first)[1] == set()


def test_a_depthwise_gradient_of_64_images_is_found_by_large_batches_alone() -> None:
    backward = torch.ops.aten.convolution_backward.default

    def of_64(gradient: torch.Tensor, x: torch.Tensor, *more: Any) -> Any:
        found = backward(gradient, x, *more)
        if more[-2] == x.shape[1] > 1 and not more[5]:  # groups, transposed
            found = (found[0], backward(gradient[:64], x[:64], *more)[1], found[2])
        return found

    every = [s for s in reader.load().samples("convolution_backward") if s.base == "float32" and not s.raises]
    many = [s for s in every if ".many_" in s.name]
    assert labels(found_by(many, backward, of_64)[1]) == {"many_depthwise_2d"}
    assert found_by(many, backward, backward)[1] == set()
    assert found_by([s for s in every if s not in many], backward, of_64)[1] == set()


group_norm_backward = torch.ops.aten.native_group_norm_backward.default


def of_few_channels(*args: Any) -> Any:
    """Return the gradients of group_norm, with zeros for the weight and the bias from the fifth channel on."""
    found = group_norm_backward(*args)
    return (found[0], *(t if t is None else torch.cat([t[:4], torch.zeros_like(t[4:])]) for t in found[1:]))


def test_a_gradient_of_four_channels_is_found_by_group_norms_of_more_alone() -> None:
    recorded = [s for s in reader.load().samples("native_group_norm_backward") if not s.raises]
    recorded = [s for s in recorded if "float32" in s.dtypes and s.name.split(".")[2] not in labels(described())]
    assert found_by(recorded, group_norm_backward, of_few_channels, "float32")[1] == set()
    found = found_by(made("native_group_norm_backward"), group_norm_backward, of_few_channels)[1]
    assert labels(found) == labels(described())
    assert found_by(made("native_group_norm_backward"), group_norm_backward, group_norm_backward)[1] == set()


def described() -> set[str]:
    return {s.name for s in made("native_group_norm_backward")}


def attends(change: Any) -> Any:
    """Return attention by its definition, with its causal mask changed by ``change``."""

    def op(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **how: Any) -> torch.Tensor:
        if how.get("enable_gqa"):
            k, v = (t.repeat_interleave(q.shape[-3] // t.shape[-3], -3) for t in (k, v))
        scores = q @ k.mT * (how.get("scale") or q.shape[-1] ** -0.5)
        row, column = torch.arange(scores.shape[-2]).unsqueeze(1), torch.arange(scores.shape[-1])
        mask, causal = how.get("attn_mask"), how.get("is_causal", False)
        kept = column <= row if causal else torch.ones(scores.shape[-2:], dtype=torch.bool)
        kept = change(kept, row, column, causal)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
        return scores.masked_fill(~kept, float("-inf")).softmax(-1) @ v

    return op


def found_with(change: Any, samples: Sequence[Sample]) -> set[str]:
    return found_by(samples, attention, attends(change))[1]


def test_a_mask_that_is_causal_by_groups_of_rows_is_found() -> None:
    def by_fours(kept: torch.Tensor, row: torch.Tensor, column: torch.Tensor, causal: bool) -> torch.Tensor:
        return (column <= (row | 3)) if causal else kept

    found = found_with(by_fours, made("scaled_dot_product_attention"))
    assert labels(found) == {
        n for n in labels({s.name for s in made("scaled_dot_product_attention")}) if "causal" in n
    } | {"other_values"}


def test_a_last_tile_of_keys_that_is_left_out_is_found() -> None:
    def whole_tiles(kept: torch.Tensor, row: torch.Tensor, column: torch.Tensor, causal: bool) -> torch.Tensor:
        n = kept.shape[-1]
        return kept & (column < n - n % 32) if n > 32 else kept

    found = found_with(whole_tiles, made("scaled_dot_product_attention"))
    assert {"tail_of_keys", "one_query", "past_tiles", "wide", "grouped_heads"} <= labels(found)
    assert "tiles" not in labels(found)
    recorded = [s for s in corpus().samples("scaled_dot_product_attention") if s.base == "float32" and not s.raises]
    assert found_with(whole_tiles, recorded) == set()


def test_attention_by_its_definition_is_right() -> None:
    assert found_with(lambda kept, *_: kept, made("scaled_dot_product_attention")) == set()
