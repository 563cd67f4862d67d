"""Several searches over the same points: the next point to test, and the cases to run there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from conformance.bisect.search import Answer, Ask, Result, Search, Stage, best


@dataclass(frozen=True, slots=True)
class Step:
    """The next step: run each of these cases once at this point."""

    point: int
    cases: tuple[str, ...]
    stage: Stage
    runs_left: int  # estimate for the case that needs most runs


def plan(searches: Mapping[str, Search], prepared: Collection[int] = (), setup: float = 1.0) -> Step | None:
    """Return the next step, None if every search has its result.

    First the ends are verified; cases with the same end share a step. Then the step is the point with the most
    information about all cases per cost, and it runs the cases about which the point gives information.
    """
    asks = {case: step for case, s in searches.items() if isinstance(step := s.next(), Ask)}
    if not asks:
        return None
    left = max(a.runs_left for a in asks.values())
    early = [a for a in asks.values() if a.stage is not Stage.NARROW]
    if early:
        first = next((a for a in early if a.point in prepared), early[0])
        cases = tuple(c for c, a in asks.items() if a.stage is not Stage.NARROW and a.point == first.point)
        return Step(first.point, cases, first.stage, left)
    worth = {case: _worth(searches[case]) for case in asks}
    points = {p: [w[p] for w in worth.values() if p in w] for p in {p for w in worth.values() for p in w}}
    chosen = best(points, prepared, setup, [searches[case].middle for case in worth])
    return Step(chosen, tuple(c for c, w in worth.items() if chosen in w), Stage.NARROW, left)


def likely_next(searches: Mapping[str, Search], step: Step, prepared: Collection[int], setup: float) -> list[int]:
    """Return points that may follow a step, for each possible answer, to prepare them in the background."""
    found: list[int] = []
    for answer in (Answer.BAD, Answer.GOOD, Answer.UNKNOWN):
        after = {c: s.answer(step.point, answer) if c in step.cases else s for c, s in searches.items()}
        following = plan(after, [*prepared, step.point], setup)
        if following and following.point not in prepared and following.point not in (*found, step.point):
            found.append(following.point)
    return found


def results(searches: Mapping[str, Search]) -> dict[str, Result]:
    """Return the results so far."""
    return {case: step for case, s in searches.items() if isinstance(step := s.next(), Result)}


def _worth(search: Search) -> dict[int, float]:
    good = search.good_end()
    return search.worth(good) if isinstance(good, int) else {}
