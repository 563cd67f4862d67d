"""Samples of further configurations, in which all sizes exceed a tile at once."""

from __future__ import annotations

from typing import Any

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary import configurations, grids, large, sizes
from conformance.corpus.vary.configurations import configuration
from conformance.inventory import call_of
from conformance.torch_versions import schema_of
from tests.generated import corpus, failing, made_by

TILE = 32
max_pool = torch.ops.aten.max_pool2d_with_indices.default
solve = call_of("_linalg_solve_ex")


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(configurations.generate, overload)


def test_each_configuration_that_was_recorded_is_tried_beyond_a_tile() -> None:
    schema = schema_of(call_of("upsample_bilinear2d"))
    recorded = {configuration(s, schema) for s in corpus().samples("upsample_bilinear2d")}
    varied = {configuration(s, schema) for s in made_by(sizes.generate, "upsample_bilinear2d")}
    assert {configuration(s, schema) for s in made("upsample_bilinear2d")} | varied >= recorded
    assert all(min(s.tensors[0].shape[1:]) > TILE for s in made("upsample_bilinear2d"))


def test_numbers_and_sizes_are_no_configuration_and_a_default_is_as_if_given() -> None:
    schema = schema_of(call_of("sum.dim_IntList"))
    samples = corpus().samples("sum.dim_IntList")
    assert len({configuration(s, schema) for s in samples}) < len(samples)
    schema = schema_of(call_of("add.Tensor"))
    assert len({configuration(s, schema) for s in corpus().samples("add.Tensor")}) == 1


def test_a_flag_that_was_recorded_in_one_way_is_turned_beyond_a_tile() -> None:
    (turned,) = (s for s in made("_linalg_solve_ex") if "left=False" in s.name and s.base == "float32")
    a, b = (s for s in turned.tensors if s.pool)
    assert a.shape[-1] == b.shape[-1] > TILE
    (averages,) = (s for s in made("_fused_adam_") if "amsgrad=True" in s.name)
    named = [s.argument for s in averages.tensors]
    assert named.count("max_exp_avg_sqs") == named.count("exp_avg_sqs") > 1
    assert max(averages.tensors[0].shape) > TILE


def test_composite_ops_have_none() -> None:
    assert not made("einsum")


def of_one_tile(*given: Any) -> tuple[torch.Tensor, ...]:
    """Return the max pool, but behind a tile of adjacent windows, the value of the row's first window."""
    values, indices = max_pool(*given)
    touching = len(given) > 2 and not given[2]
    if touching and values.shape[-1] > TILE // 2:
        values[..., TILE // 2 :] = values[..., :1]
    return values, indices


def from_the_left(*given: Any, **more: Any) -> tuple[torch.Tensor, ...]:
    """Solve a system, but for ``left=False`` with ``a`` in place of its transpose."""
    a, b, left = (*given, True)[:3]
    if more.pop("left", left):
        found: tuple[torch.Tensor, ...] = solve(a, b, **more)
        return found
    _, *factors = solve(a, b, left=False, **more)
    return (solve(a, b.mT)[0].mT, *factors)


def others(overload: str) -> list[Sample]:
    generated = (s for axis in (sizes, large, grids) for s in made_by(axis.generate, overload))
    return [*corpus().samples(overload), *generated]


def test_a_loop_for_touching_windows_that_is_wrong_past_a_tile_is_found() -> None:
    overload = "max_pool2d_with_indices"
    assert not failing(max_pool, of_one_tile, others(overload))
    assert failing(max_pool, of_one_tile, made(overload))
    assert not failing(max_pool, max_pool, made(overload))


def test_a_solver_from_the_right_is_found_by_these_alone() -> None:
    overload = "_linalg_solve_ex"
    assert not failing(solve, from_the_left, others(overload))
    assert failing(solve, from_the_left, made(overload))
    assert not failing(solve, solve, made(overload))
