"""Where a search can begin, from results that are there already: the newest version that passed, the oldest that fails.

Of the backend that is searched, and of any of its lanes: a lane that fails a case makes its version a failing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from conformance.bisect.points import Point
from conformance.store import Run
from conformance.vocabulary import CellId, Observation, Status


def from_runs(runs: Iterable[Run], cases: Sequence[str], points: Sequence[Point]) -> tuple[int | None, int | None]:
    """(good end, bad end) as indices, the bad one the oldest that fails with every case passing somewhere before it.

    None where the results do not say. Every case has to have passed at the good end, and to have failed at the bad one.
    """
    seen: dict[int, list[dict[str, bool]]] = {}
    for run in runs:
        at = _point(run.manifest.torch, points)
        if at is not None:
            seen.setdefault(at, []).append(_outcomes(run.observations, cases))
    failing = [i for i, lanes in seen.items() if all(any(lane.get(c) is False for lane in lanes) for c in cases)]
    passing = [i for i, lanes in seen.items() if all(_passed(lanes, c) for c in cases)]
    if not failing:
        return None, None
    newest = max(failing)
    good = max((i for i in passing if i < newest), default=None)
    bad = min(i for i in failing if good is None or i > good)
    return good, bad


def _passed(lanes: Sequence[dict[str, bool]], case: str) -> bool:
    """Whether a case passed in a lane of a version and failed in none."""
    seen = [lane[case] for lane in lanes if case in lane]
    return bool(seen) and all(seen)


def _outcomes(observations: Iterable[Observation], cases: Sequence[str]) -> dict[str, bool]:
    """Case -> whether it passed, of those that were judged."""
    wanted = {cell: [c for c in cases if c.partition("#")[0] == str(cell)] for cell in map(_cell, cases) if cell}
    found = {}
    for seen in observations:
        for case in wanted.get(seen.cell, []):
            failed = any(f.case == case for f in seen.failures)
            if failed or seen.status in (Status.PASS, Status.FAIL):
                found[case] = not failed
    return found


def _cell(case: str) -> CellId | None:
    return CellId.parse(case.partition("#")[0])


def _point(torch: str, points: Sequence[Point]) -> int | None:
    """The point that a run's torch, e.g. ``2.8.0+cpu``, is of."""
    version = re.match(r"\d+\.\d+", torch)
    if version is None or "dev" in torch:
        return None
    return next((i for i, p in enumerate(points) if p.name.partition("+")[0] == version[0]), None)
