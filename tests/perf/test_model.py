"""The records of a measured run."""

from __future__ import annotations

import json

import pytest

from conformance.perf.model import End, Limits, Record, Size, Spread, Work, round_from
from tests.perf.times import ended, record, rounds


def test_a_record_survives_its_json() -> None:
    made = record(work=Work(10, 80, 40, 200, 0, 2, 1), of=rounds(2e-3))
    assert Record.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert Record.from_json(ended(End.CRASH).to_json()) == ended(End.CRASH)


def test_stored_medians_and_quartiles_are_those_of_all_blocks() -> None:
    found = record(of=rounds(1.0, noise=0, processes=2)).to_json()["seconds"]["device"]
    assert found["n"] == 10
    assert found["low"] < found["median"] < found["high"]


@pytest.mark.parametrize(
    "wrong",
    [{"device": []}, {"device": [1.0, 2.0]}, {"device": [0.0]}, {"device": [float("nan")]}, {"cpu": [-1.0]}],
    ids=str,
)
def test_a_round_with_times_that_cannot_be_is_refused(wrong: dict[str, list[float]]) -> None:
    sound = {"calls": 1, "host": [1.0], "device": [1.0], "cpu": [1.0]}
    assert round_from(sound).device == (1.0,)
    with pytest.raises(ValueError, match="round"):
        round_from(sound | wrong)


def test_a_spread_of_one_time_is_that_time() -> None:
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 1)
    with pytest.raises(ValueError, match="no times"):
        Spread.of([])


def test_the_ratio_to_cpu_is_taken_block_by_block() -> None:
    """CPU's times in these blocks differ by a factor of up to three, and the device's times by the same factor."""
    assert record(of=rounds(5e-3, 1e-3, noise=0)).ratio == pytest.approx(5)


def test_a_limit_is_the_median_of_the_processes_that_have_it() -> None:
    found = Limits.median([Limits(1.0, None, 3.0), Limits(2.0, None, 1.0), Limits(9.0, 7.0, None)])
    assert found == Limits(2.0, 7.0, 2.0)
    assert Limits.median([]) == Limits()


def test_sizes_grow() -> None:
    elements = [size.elements for size in Size]
    assert elements == sorted(elements)
    assert elements[0] <= 1000
    assert 1_000_000 <= elements[-1] <= 10_000_000
