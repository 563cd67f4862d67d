"""Samples in which all sizes exceed a tile at once."""

from __future__ import annotations

from typing import Any

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary.grids import generate
from conformance.corpus.vary.sizes import generate as of_sizes
from tests.by_hand import found_by
from tests.generated import made_by

TILE = 128
baddbmm = torch.ops.aten.baddbmm.default


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_products_have_several_tiles_in_each_dimension() -> None:
    assert any(min(s.tensors[1].shape + s.tensors[2].shape) > 2 * TILE for s in made("addmm"))
    assert any(min(s.tensors[1].shape[1:] + s.tensors[2].shape[1:]) > TILE for s in made("baddbmm"))


def test_pointwise_and_composite_ops_have_none() -> None:
    assert not made("add.Tensor")
    assert not made("matmul")


def tiles(rows: int, columns: int) -> list[tuple[int, int]]:
    return [(row, column) for row in range(0, rows, TILE) for column in range(0, columns, TILE)]


def test_a_grid_whose_second_tiles_are_exchanged_is_found_by_these_samples_alone() -> None:
    def exchanged(*args: Any, **kwargs: Any) -> torch.Tensor:
        right = baddbmm(*args, **kwargs)
        result, grid = torch.zeros_like(right), tiles(*right.shape[-2:])
        for row, column in grid:  # swap the tiles of a position and of its transpose
            of = (column, row) if (column, row) in grid else (row, column)
            tile = right[:, of[0] : of[0] + TILE, of[1] : of[1] + TILE]
            part = result[:, row : row + TILE, column : column + TILE]
            rows, columns = (min(n) for n in zip(part.shape[1:], tile.shape[1:], strict=True))
            part[:, :rows, :columns] = tile[:, :rows, :columns]
        return result

    floats = [s for s in made("baddbmm") if s.base == "float32"]
    judged, found = found_by(floats, baddbmm, exchanged)
    assert found
    assert found_by([s for s in made_by(of_sizes, "baddbmm") if s.base == "float32"], baddbmm, exchanged)[1] == set()
    assert found_by(floats, baddbmm, baddbmm) == (judged, set())
