"""Where a search can begin, from results that are there already: the newest point that passed, the oldest that fails.

Of the backend that is searched, and of any of its lanes: a lane that fails a case makes its version a failing one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.bisect.points import Point
from conformance.lanes import torch_wheel
from conformance.records import FAILURES_KEPT
from conformance.results import store
from conformance.results.store import Manifest, Run, runs, views
from conformance.vocabulary import CaseId, CellId, Status

NIGHTS = 30  # of a lane's closed runs, the latest


def recorded(results: Path, cases: Sequence[str], backend: str, environment: str = "") -> tuple[list[Run], list[str]]:
    """(a backend's runs, those of a lane the oldest first, with the cells of these cases alone; what cannot be read).

    ``environment``: only the lanes of this one; "": of all. A lane without a closed run gives the one that was cut off.
    """
    found, left_out = [], []
    lanes = store.lanes(results)
    names = [name for lane in lanes for name in runs.names(results, lane)[-NIGHTS:]]
    journals = [d for d in sorted(results.glob("*")) if (d / store.OBSERVATIONS).is_file() and d.name not in lanes]
    for directory in (*(results / store.RUNS / name for name in names), *journals):
        try:
            run = _run(directory, cases, lambda m: m.backend == backend and environment in ("", m.environment))
        except store.StoreError as e:
            left_out.append(str(e))
        else:
            found += [run] if run else []
    return found, left_out


def _run(directory: Path, cases: Sequence[str], wanted: Callable[[Manifest], bool]) -> Run | None:
    """A closed run or one that was cut off, if it is wanted. Raises StoreError."""
    if not (directory / runs.MANIFEST).is_file():
        run = store.read(directory)
        return run if wanted(run.manifest) else None
    closed = runs.opened(directory)
    return Run(closed.manifest, views.of_cells(closed, _cells(cases))) if wanted(closed.manifest) else None


@dataclass(frozen=True)
class Ends:
    """What results say of the points."""

    passing: tuple[int, ...]  # where every case passed in a lane, and failed in none
    failing: tuple[int, ...]  # where every case failed in a lane

    def bounds(self, bad: int | None = None) -> tuple[int | None, int | None]:
        """(good end, bad end): the newest passing point, and the oldest that fails with nothing passing after it.

        With ``bad`` given, the newest that passed before it. None where the results do not say.
        """
        newest = bad if bad is not None else max(self.failing, default=None)
        if newest is None:
            return None, None
        good = max((i for i in self.passing if i < newest), default=None)
        later = (i for i in self.failing if good is None or i > good)
        return good, bad if bad is not None else min(later)


def from_runs(found: Iterable[Run], cases: Sequence[str], points: Sequence[Point]) -> Ends:
    """What runs, the oldest first, say of each point; of a lane's at the same point the latest with a case counts."""
    seen: dict[int, dict[tuple[str, str], bool]] = {}  # point -> (lane, case) -> whether it passed
    for run in found:
        at = _point(run.manifest, points)
        if at is not None:
            outcomes = _outcomes(run, cases).items()
            seen.setdefault(at, {}).update({(run.manifest.lane, case): passed for case, passed in outcomes})
    by_case = {at: [[p for (_, c), p in lanes.items() if c == case] for case in cases] for at, lanes in seen.items()}
    return Ends(
        passing=tuple(sorted(at for at, said in by_case.items() if all(p and all(p) for p in said))),
        failing=tuple(sorted(at for at, said in by_case.items() if all(not all(p) for p in said))),
    )


def _outcomes(run: Run, cases: Sequence[str]) -> dict[str, bool]:
    """Case -> whether it passed, of those of which that is known: of a cell's failing cases only the first are kept.

    A run of some of a cell's cases does not say of which: then only its failures are known.
    """
    found = {}
    every = run.manifest.tier == "full" and not any(a.startswith("--case") for a in run.manifest.arguments)
    for seen in run.observations:
        failing = {f.case for f in seen.failures}
        for case in (c for c in cases if _cell_of(c) == seen.cell):
            passed = seen.status is Status.PASS or (seen.status is Status.FAIL and len(failing) < FAILURES_KEPT)
            if case in failing or (every and passed):
                found[case] = case not in failing
    return found


def _cells(cases: Sequence[str]) -> set[CellId]:
    return {cell for case in cases if (cell := _cell_of(case))}


def _cell_of(case: str) -> CellId | None:
    found = CaseId.parse(case)
    return found.cell if found else None


def _point(run: Manifest, points: Sequence[Point]) -> int | None:
    """The point that a run was of: of that torch, e.g. ``2.8.0+cpu``, and of that commit of the backend."""
    return next((i for i, p in enumerate(points) if _is_of(run, p)), None)


def _is_of(run: Manifest, point: Point) -> bool:
    if point.commit:
        same = run.backend_commit and point.commit.startswith(run.backend_commit)
        return bool(same) and (not point.torch or torch_wheel.satisfied(point.torch, [run.torch]))
    version = re.match(r"\d+\.\d+", run.torch)
    return version is not None and "dev" not in run.torch and point.name == version[0]
