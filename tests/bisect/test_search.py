"""The search: equal to a linear scan for certain failures, and calibrated for rare ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import ceil, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.bisect.posterior import Rate
from conformance.bisect.search import SURE_OF_RATE, Answer, Ask, Kind, Result, Search, Stage, Tally


@dataclass
class World:
    """A history whose points fail at ``rate`` from ``culprit`` on, and some of which cannot be tested."""

    points: int
    culprit: int
    rate: float = 1.0
    untestable: frozenset[int] = frozenset()
    seed: int = 0
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def run(self, point: int) -> Answer:
        self.asked.append(point)
        if point in self.untestable:
            return Answer.UNKNOWN
        return Answer.BAD if point >= self.culprit and self._random.random() < self.rate else Answer.GOOD

    def scan(self) -> tuple[int, int]:
        """Return the range of the first bad point, as a test of every point from the oldest on finds it."""
        tested = [p for p in range(self.points) if p not in self.untestable]
        return max(p for p in tested if p < self.culprit) + 1, min(p for p in tested if p >= self.culprit)


def finish(search: Search, world: World) -> Result:
    step = search.next()
    while isinstance(step, Ask):
        search = search.answer(step.point, world.run(step.point))
        step = search.next()
    return step


@st.composite
def worlds(draw: st.DrawFn) -> World:
    points = draw(st.integers(2, 48))
    untestable = draw(st.frozensets(st.integers(1, points - 1).filter(lambda p: p < points - 1), max_size=points // 3))
    return World(points, draw(st.integers(1, points - 1)), untestable=untestable if points > 2 else frozenset())


@settings(deadline=None)
@given(worlds())
def test_a_certain_failure_is_found_where_a_linear_scan_finds_it(world: World) -> None:
    result = finish(Search(world.points, bad=world.points - 1, good=0), world)
    first, last = world.scan()
    assert (result.first, result.last) == (first, last)
    assert result.kind is (Kind.CULPRIT if first == last else Kind.RANGE)
    assert result.untested == tuple(p for p in range(first, last + 1) if p in world.untestable)


@settings(deadline=None)
@given(st.integers(2, 200), st.data())
def test_a_certain_failure_takes_no_more_points_than_halving_does(points: int, data: st.DataObject) -> None:
    world = World(points, data.draw(st.integers(1, points - 1)))
    finish(Search(points, bad=points - 1, good=0), world)
    assert len(set(world.asked)) <= ceil(log2(points)) + 2


@settings(deadline=None)
@given(worlds())
def test_the_good_end_is_found_by_itself(world: World) -> None:
    result = finish(Search(world.points, bad=world.points - 1), world)
    assert (result.first, result.last) == world.scan()


@given(st.integers(1, 40), st.booleans())
def test_a_failure_that_was_always_there_is_said_to_be(points: int, certain: bool) -> None:
    result = finish(Search(points, bad=points - 1, rate=Rate.known(1.0 if certain else None)), World(points, 0))
    assert result.kind is Kind.ALWAYS


@settings(deadline=None, max_examples=50)
@given(worlds(), st.floats(0.2, 0.9), st.integers(0, 2**32))
def test_an_untestable_point_is_asked_once_and_every_search_ends(world: World, rate: float, seed: int) -> None:
    world.rate, world.seed = rate, seed
    world.__post_init__()
    result = finish(Search(world.points, bad=world.points - 1, good=0, most_runs=300), world)
    assert all(world.asked.count(p) <= 1 for p in world.untestable)
    assert len(world.asked) <= 300
    assert result.kind is not Kind.RANGE or result.confidence >= 0.95 or len(world.asked) == 300


@pytest.mark.parametrize("rate", [0.3, 0.6])
def test_a_flaky_failure_is_named_as_surely_as_is_said(rate: float) -> None:
    wrong = ended = 0
    for seed in range(120):
        world = World(64, 1 + seed * 37 % 63, rate, seed=seed)
        result = finish(Search(64, bad=63, good=0, threshold=0.9, tries=20), world)
        ended += result.kind in (Kind.CULPRIT, Kind.RANGE)
        wrong += not result.first <= world.culprit <= result.last
    assert ended >= 118
    assert wrong <= 0.1 * 120 + 6  # the threshold's share, plus two standard deviations


def test_repeating_stops_where_enough_is_known() -> None:
    world = World(64, 40, 0.3, seed=1)
    result = finish(Search(64, bad=63, good=0), world)
    assert (result.kind, result.first) == (Kind.CULPRIT, 40)
    per_point = {p: world.asked.count(p) for p in set(world.asked)}
    assert max(per_point.values()) < 40
    assert per_point[39] > 5


def test_the_ends_are_verified_before_anything_else() -> None:
    world = World(10, 6)
    search = Search(10, bad=9, good=0)
    stages = []
    while isinstance(step := search.next(), Ask):
        stages.append((step.stage, step.point))
        search = search.answer(step.point, world.run(step.point))
    assert list(dict.fromkeys(stages))[:2] == [(Stage.VERIFY_BAD, 9), (Stage.VERIFY_GOOD, 0)]
    assert stages.count((Stage.VERIFY_BAD, 9)) == SURE_OF_RATE
    order = [stage for stage, _ in stages]
    assert order == sorted(order, key=list(Stage).index)


def test_a_bad_end_that_passes_is_refused() -> None:
    assert finish(Search(10, bad=5, good=0), World(10, 6)).kind is Kind.NOT_BAD


def test_a_good_end_that_fails_is_refused() -> None:
    assert finish(Search(10, bad=9, good=7), World(10, 6)).kind is Kind.NOT_GOOD


def test_an_end_that_cannot_be_tested_is_refused() -> None:
    assert finish(Search(10, bad=9, good=0), World(10, 6, untestable=frozenset({0}))).kind is Kind.NO_END


def test_points_known_not_to_be_testable_are_never_asked() -> None:
    world = World(10, 5)
    result = finish(Search(10, bad=9, good=0, skip=frozenset({4, 5})), world)
    assert not {4, 5} & set(world.asked)
    assert (result.first, result.last, result.untested) == (4, 6, (4, 5))


def test_a_known_rate_saves_the_runs_that_would_find_it_out() -> None:
    worlds = World(10, 6), World(10, 6)
    for world, rate in zip(worlds, (None, 1.0)):
        finish(Search(10, bad=9, good=0, rate=Rate.known(rate)), world)
    assert len(worlds[1].asked) < len(worlds[0].asked)


def test_the_steps_left_are_about_right() -> None:
    world = World(64, 20)
    search = Search(64, bad=63, good=0)
    told = []
    while isinstance(step := search.next(), Ask):
        told.append(step.runs_left)
        search = search.answer(step.point, world.run(step.point))
    assert all(abs(left - (len(told) - i)) <= 2 for i, left in enumerate(told)), told


def test_a_threshold_that_no_majority_meets_is_refused() -> None:
    with pytest.raises(ValueError, match=r"between 0\.5 and 1"):
        Search(10, bad=9, good=0, threshold=0.4)


def test_a_tally_counts_each_answer() -> None:
    assert Tally().plus(Answer.BAD).plus(Answer.GOOD).plus(Answer.UNKNOWN) == Tally(1, 1, 1)
