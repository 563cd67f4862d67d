"""Minimization of a failing sequence, compared with a search of all its parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.support.ddmin import ddmin

SIZE = 9
CAUSES = st.lists(st.sets(st.integers(0, SIZE - 1), max_size=4), min_size=1, max_size=4)


def parts_of(kept: Sequence[int]) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(kept, n) for n in range(len(kept) + 1)))


@given(CAUSES)
def test_where_more_never_heals_no_part_of_what_is_left_fails(causes: list[set[int]]) -> None:
    """A list with all elements of one cause fails. No smaller part of the result fails: brute force tries them all."""

    def fails(part: Sequence[int]) -> bool:
        return any(cause <= set(part) for cause in causes)

    found = ddmin(SIZE, fails)
    assert [part for part in parts_of(found.kept) if fails(part)] == [found.kept]
    assert found.minimal
    assert tuple(sorted(found.kept)) == found.kept


@given(st.sets(st.sets(st.integers(0, 5)).map(frozenset)))
def test_ddmin_returns_a_failing_list_that_needs_each_element(failing: set[frozenset[int]]) -> None:
    """Any set of parts may fail, so a longer part may pass where a shorter one fails."""
    asked: list[Sequence[int]] = []

    def fails(part: Sequence[int]) -> bool:
        asked.append(part)
        return len(part) == 6 or frozenset(part) in failing

    found = ddmin(6, fails)
    assert len(asked) == len(set(asked))
    assert fails(found.kept)
    assert not any(fails(tuple(i for i in found.kept if i != out)) for out in found.kept)


class Counted:
    """A test for whether a part has all of ``needed``. After ``most`` answers, it returns None."""

    def __init__(self, *needed: int, most: int = 10_000) -> None:
        self.needed, self.most, self.asked = set(needed), most, 0

    def __call__(self, part: Sequence[int]) -> bool | None:
        self.asked += 1
        return None if self.asked > self.most else self.needed <= set(part)


@settings(max_examples=20)
@given(st.integers(0, 299), st.integers(0, 299))
def test_two_of_hundreds_are_found_in_few_tries(first: int, second: int) -> None:
    fails = Counted(first, second)
    assert set(ddmin(300, fails).kept) == {first, second}
    assert fails.asked < 120


def test_ddmin_finds_one_of_4000_elements_in_fewer_than_30_attempts() -> None:
    fails = Counted(2500)
    assert ddmin(4000, fails).kept == (2500,)
    assert fails.asked < 30


def test_ddmin_reports_that_it_stopped_without_an_answer() -> None:
    found = ddmin(64, Counted(3, 20, most=5))
    assert {3, 20} <= set(found.kept) < set(range(64))
    assert not found.minimal


def test_ddmin_returns_an_empty_list_if_that_fails_too() -> None:
    assert ddmin(5, lambda part: True).kept == ()
    assert ddmin(0, lambda part: True).kept == ()
