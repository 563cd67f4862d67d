"""The interval of a ratio."""

from __future__ import annotations

import random

from conformance.perf.interval import of_ratio


def blocks(median: float, seed: int, *, between: float = 0.0, within: float = 0.03) -> list[list[float]]:
    draw = random.Random(seed)
    processes = [draw.gauss(1, between) for _ in range(5)]
    return [[median * p * draw.gauss(1, within) for _ in range(5)] for p in processes]


def test_the_interval_contains_the_ratio_that_the_times_were_made_with() -> None:
    for seed in range(20):
        found = of_ratio(blocks(1.0, seed), blocks(1.5, seed + 100))
        assert found.low < 1.5 < found.high
        assert found.low > 1.2


def test_processes_that_differ_widen_the_interval() -> None:
    """Blocks of one process agree with each other, but do not predict those of the next process."""
    alike, unlike = (of_ratio(blocks(1.0, 1, between=b, within=0.001), blocks(1.0, 2, between=b)) for b in (0, 0.2))
    assert unlike.high - unlike.low > 5 * (alike.high - alike.low)


def test_the_same_times_give_the_same_interval() -> None:
    old, new = blocks(1.0, 3), blocks(1.1, 4)
    assert of_ratio(old, new) == of_ratio(old, new)


def test_one_process_a_side_has_the_interval_of_its_blocks() -> None:
    found = of_ratio(blocks(1.0, 5)[:1], blocks(2.0, 6)[:1])
    assert 1.5 < found.low < found.ratio < found.high < 2.5
