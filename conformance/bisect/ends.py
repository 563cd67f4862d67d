"""The ends of a search from stored results: the newest point that passes, and the oldest that fails.

The results of all lanes of the backend count. A version fails if a case fails in one of its lanes.
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

NIGHTS = 30  # the number of closed runs of each lane to read


def recorded(results: Path, cases: Sequence[str], backend: str, environment: str = "") -> tuple[list[Run], list[str]]:
    """Return a backend's runs with the cells of these cases, the oldest first in each lane, and the reading errors.

    ``backend``: its name, or ``module:device``. ``environment``: only its lanes; "": all lanes. For a lane without
    a closed run, the interrupted run is returned.
    """
    found, left_out = [], []
    series = runs.by_series(results)
    names = [name for of_series in series.values() for name in of_series[-NIGHTS:]]
    journals = [d for d in sorted(results.glob("*")) if (d / store.OBSERVATIONS).is_file() and d.name not in series]
    for directory in (*(results / store.RUNS / name for name in names), *journals):
        try:
            run = _run(directory, cases, lambda m: _is_wanted(m, backend, environment))
        except store.StoreError as e:
            left_out.append(str(e))
        else:
            found += [run] if run else []
    return found, left_out


def _is_wanted(run: Manifest, backend: str, environment: str) -> bool:
    return backend in (run.backend, run.backend_option) and environment in ("", run.environment)


def _run(directory: Path, cases: Sequence[str], wanted: Callable[[Manifest], bool]) -> Run | None:
    """Return a closed or interrupted run, None if it is not wanted. Raises StoreError."""
    if not (directory / runs.MANIFEST).is_file():
        run = store.read(directory)
        return run if wanted(run.manifest) else None
    closed = runs.opened(directory)
    return Run(closed.manifest, views.of_cells(closed, _cells(cases))) if wanted(closed.manifest) else None


@dataclass(frozen=True)
class Ends:
    """The outcomes of the points."""

    passing: tuple[int, ...]  # points where every case passed in a lane, and failed in none
    failing: tuple[int, ...]  # points where every case failed in a lane

    def bounds(self, bad: int | None = None) -> tuple[int | None, int | None]:
        """Return the good end, the newest passing point, and the bad end, the oldest point after it that fails.

        With ``bad``, the good end is the newest passing point before it. An unknown end is None.
        """
        newest = bad if bad is not None else max(self.failing, default=None)
        if newest is None:
            return None, None
        good = max((i for i in self.passing if i < newest), default=None)
        later = (i for i in self.failing if good is None or i > good)
        return good, bad if bad is not None else min(later)


def from_runs(found: Iterable[Run], cases: Sequence[str], points: Sequence[Point]) -> Ends:
    """Return the outcomes of the points. ``found``: runs, the oldest first; a lane's latest outcome counts."""
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
    """Return whether each case passed, if that is known. An observation has only the first failing cases of its cell.

    If a run selected some cases of a cell, only its failures are known.
    """
    found = {}
    every = run.manifest.tier != "smoke" and not any(a.startswith("--case") for a in run.manifest.arguments)
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
    """Return the point of a run, by its torch version, e.g. ``2.8.0+cpu``, and the backend's commit."""
    return next((i for i, p in enumerate(points) if _is_of(run, p)), None)


def _is_of(run: Manifest, point: Point) -> bool:
    if point.commit:
        same = run.backend_commit and point.commit.startswith(run.backend_commit)
        return bool(same) and (not point.torch or torch_wheel.satisfied(point.torch, [run.torch]))
    version = re.match(r"\d+\.\d+", run.torch)
    return version is not None and "dev" not in run.torch and point.name == version[0]
