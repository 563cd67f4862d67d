"""Splitting a selection: each cell is in one shard, shards take equally long, and every machine splits alike."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.layouts import LAYOUTS
from conformance.results.shards import TYPICAL, Shard, ShardError, part, weigh
from conformance.vocabulary import CellId

CELLS = st.lists(
    st.builds(
        CellId, st.sampled_from(["a", "b"]), st.from_regex("[a-z]{1,4}", fullmatch=True), st.just("float32"),
        st.sampled_from(["contiguous", "expanded"]),
    ),
    unique=True, max_size=40,
)  # fmt: skip


@given(CELLS, st.integers(1, 9), st.data())
def test_every_cell_is_in_exactly_one_shard_whatever_it_weighs(
    cells: list[CellId], count: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(1, 10**12), min_size=len(cells), max_size=len(cells)))
    found = [part(cells, weights, Shard(i, count)) for i in range(1, count + 1)]
    assert sum(map(len, found)) == len(cells)
    assert set().union(*found) == set(cells)


@given(CELLS, st.integers(1, 9), st.data())
def test_a_shard_exceeds_its_share_by_at_most_the_longest_cell(
    cells: list[CellId], count: int, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(1, 10**12), min_size=len(cells), max_size=len(cells)))
    of = dict(zip(cells, weights))
    for i in range(1, count + 1):
        took = sum(of[cell] for cell in part(cells, weights, Shard(i, count)))
        assert took * count <= sum(weights) + max(weights, default=0) * count


def test_the_order_in_which_cells_are_collected_does_not_matter() -> None:
    rng = random.Random(0)
    weights = {CellId("a", f"op{i}", "bool", "contiguous"): rng.randrange(1, 100) for i in range(50)}
    shuffled = rng.sample(list(weights), len(weights))
    for i in (1, 2, 3):
        straight = part(list(weights), list(weights.values()), Shard(i, 3))
        assert part(shuffled, [weights[c] for c in shuffled], Shard(i, 3)) == straight


def cell(overload: str, layout: str) -> CellId:
    return CellId("a", overload, "bool", layout)


def test_a_cell_that_was_not_measured_takes_what_cells_of_its_layout_take() -> None:
    mm, cat, new = cell("mm", "contiguous"), cell("cat", "contiguous"), cell("new", "contiguous")
    assert weigh([mm, cat, new], {str(mm): 900, str(cat): 300}) == [900, 300, 600]


def test_a_layout_that_was_not_measured_takes_its_typical_time_at_the_measured_speed() -> None:
    mm, large = cell("mm", "contiguous"), cell("mm", "sizes")
    at_half_speed = weigh([mm], {})[0] * 2
    assert weigh([mm, large], {str(mm): at_half_speed}) == [at_half_speed, weigh([large], {})[0] * 2]


def test_without_measurements_a_program_weighs_more_than_a_call() -> None:
    program, compiled, call = weigh([cell("model", ""), cell("mm", "inductor"), cell("mm", "contiguous")], {})
    assert program > compiled > call > 0


def test_a_layout_with_a_typical_time_is_one_of_the_suite() -> None:
    assert TYPICAL.keys() <= {"", *LAYOUTS}


def test_a_shard_is_read_as_it_is_written() -> None:
    assert Shard.parse("2/4") == Shard(2, 4)
    assert str(Shard.parse("04/10")) == "4/10"


@pytest.mark.parametrize("text", ["0/3", "4/3", "x", "", "1/0", "-1/3", "1/3/5", "1 / 3", "1/99999"])
def test_an_invalid_shard_is_an_error(text: str) -> None:
    with pytest.raises(ShardError, match="is not a shard; expected I/N with 1 <= I <= N <= 9999, for example 2/4"):
        Shard.parse(text)
