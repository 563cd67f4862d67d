"""Many searches over the same points: which point to probe next, with which of the cases."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from conformance.bisect.search import Answer, Ask, Result, Search, Stage, best


@dataclass(frozen=True, slots=True)
class Step:
    """Run these cases once each at this point."""

    point: int
    cases: tuple[str, ...]
    stage: Stage
    runs_left: int  # about, of the case that needs most


def plan(searches: Mapping[str, Search], prepared: Collection[int] = (), setup: float = 1.0) -> Step | None:
    """The next step, None when every search has its result.

    Ends are verified before anything is narrowed down; the cases that ask for the same end share the step. Then the
    point is taken that tells most of all cases together, per cost, and each case for which it tells something is run.
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
    """Points that may be asked after a step, whatever it answers, but for those prepared: worth preparing meanwhile."""
    found: list[int] = []
    for answer in (Answer.BAD, Answer.GOOD, Answer.UNKNOWN):
        after = {c: s.answer(step.point, answer) if c in step.cases else s for c, s in searches.items()}
        following = plan(after, [*prepared, step.point], setup)
        if following and following.point not in prepared and following.point not in (*found, step.point):
            found.append(following.point)
    return found


def results(searches: Mapping[str, Search]) -> dict[str, Result]:
    """The results there are."""
    return {case: step for case, s in searches.items() if isinstance(step := s.next(), Result)}


def _worth(search: Search) -> dict[int, float]:
    good = search.good_end()
    return search.worth(good) if isinstance(good, int) else {}
