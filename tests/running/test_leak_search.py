"""Searches for leaks: when one runs, and the cell that is blamed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.running.leak_search import Batch, culprit
from conformance.vocabulary import CellId

CELLS = [CellId("masking", "masked_fill_.Scalar", "float32", layout) for layout in ("a", "b", "c", "d", "e")]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_leak_searches_keep_to_a_share_of_the_time() -> None:
    clock = Clock()
    batch = Batch(clock)
    assert batch.due()
    batch.searched(2.0)
    clock.now = 39.0
    assert not batch.due()
    clock.now = 40.0
    assert batch.due()


@pytest.mark.parametrize("guilty", CELLS)
def test_the_leaking_cell_of_a_batch_is_found_by_bisection(guilty: CellId) -> None:
    tried = []

    def loses(cells: Sequence[CellId]) -> bool:
        tried.append(len(cells))
        return guilty in cells

    assert culprit(CELLS, loses) == guilty
    assert len(tried) <= 4


def test_a_leak_that_does_not_repeat_is_blamed_on_no_cell() -> None:
    assert culprit(CELLS, lambda _: False) is None
