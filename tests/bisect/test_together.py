"""Searches of several cases: the same results as alone, with fewer points."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.bisect.search import Answer, Result, Search, Stage
from conformance.bisect.together import likely_next, plan, results

POINTS = 40


def finish(culprits: dict[str, int]) -> tuple[dict[str, Result], list[int], list[list[int]]]:
    """Search. Return the results, the prepared points in order, and the points foreseen at each step."""
    searches = {case: Search(POINTS, bad=POINTS - 1, good=0) for case in culprits}
    prepared: list[int] = []
    foreseen: list[list[int]] = []
    while step := plan(searches, prepared, setup=5):
        if step.point not in prepared:
            prepared.append(step.point)
        foreseen.append(likely_next(searches, step, prepared, 5))
        for case in step.cases:
            answer = Answer.BAD if step.point >= culprits[case] else Answer.GOOD
            searches[case] = searches[case].answer(step.point, answer)
    return results(searches), prepared, foreseen


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, POINTS - 1), min_size=1, max_size=5))
def test_each_case_gets_its_own_culprit(culprits: list[int]) -> None:
    found, _, _ = finish({str(i): c for i, c in enumerate(culprits)})
    assert [found[str(i)].first for i in range(len(culprits))] == culprits


def test_cases_with_one_culprit_cost_the_points_of_one() -> None:
    alone, together = (finish(dict.fromkeys(cases, 17))[1] for cases in ("a", "abcdef"))
    assert len(together) == len(alone)


def test_cases_with_near_culprits_share_most_points() -> None:
    apart = [len(finish({"a": c})[1]) for c in (12, 17, 20)]
    assert len(finish({"a": 12, "b": 17, "c": 20})[1]) < sum(apart) - 5


def test_a_step_is_foreseen_while_the_one_before_it_runs() -> None:
    _, prepared, foreseen = finish({"a": 17})
    assert all(any(point in seen for seen in foreseen) for point in prepared[2:])
    assert all(len(seen) <= 3 for seen in foreseen)


def test_ends_are_verified_with_all_cases_at_once() -> None:
    step = plan({case: Search(POINTS, bad=POINTS - 1, good=0) for case in "abc"})
    assert step
    assert (step.cases, step.stage) == (("a", "b", "c"), Stage.VERIFY_BAD)
