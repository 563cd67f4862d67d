"""The last night in the store: the latest run of each lane, its unexpected failures, and the new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from conformance.nightly.families import Failing
from conformance.records import Observation
from conformance.results import causes, expectations, expected_files, history
from conformance.results.causes import PassingCell
from conformance.results.diff import Change, Difference
from conformance.results.expectations import Verdict
from conformance.results.store import Closed, StoreError, runs, views
from conformance.results.store.manifest import began
from conformance.vocabulary import CellId, Status

NIGHT = timedelta(hours=20)  # a run that began so long before the newest run belongs to another night


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of tonight."""

    run: Closed
    before: Closed | None  # the previous run with all cells of ``run``, if ``run`` is complete
    failing: tuple[Failing, ...]  # unexpected failures
    new: frozenset[str]  # the cells that newly fail
    changes: tuple[Difference, ...]  # since the previous run


def read(results: Path, expected: Path | None) -> list[Lane]:
    """Return tonight's lanes. ``expected``: the path of the known failures, None for those of each run.

    Raises StoreError, TomlError.
    """
    names = runs.shown_series(results)
    latest = [runs.opened(results / runs.RUNS / of_series[-1]) for of_series in names.values()]
    if not latest:
        raise StoreError(f"no closed run in {results / runs.RUNS}/; expected those of a night")
    starts = {run.name: at for run in latest if (at := began(run.name))}
    newest = max(starts.values())
    tonight = [run for run in latest if newest - starts[run.name] < NIGHT]
    return [_lane(results, run, names[run.manifest.series], expected) for run in tonight]


def night(lanes: list[Lane]) -> str:
    """Return the day on which the newest run began, for texts."""
    return max(at for lane in lanes if (at := began(lane.run.name))).strftime("%Y-%m-%d")


def _lane(results: Path, run: Closed, names: Sequence[str], expected: Path | None) -> Lane:
    manifest = run.manifest
    of_lane = history.of_series(results, manifest.series, names)
    before = next((r for r in reversed(of_lane) if r.name < run.name and r.covers(run)), None) if run.whole else None
    changes = history.changes(before, run, of_lane) if before else []
    flaky = {str(d.pair.cell): d.note for d in changes if d.change is Change.FLAKY}
    known = expectations.load(expected_files.of_results(expected, manifest))
    seen = [
        o
        for o in views.failures(run)
        if expectations.judge(o, known, manifest.lane).verdict is Verdict.UNEXPECTED_FAILURE
    ]
    by_cell = {cell: cause for cause in causes.of_failures(seen, _passing(run, seen)) for cell in cause.cells}
    failing = tuple(
        Failing(manifest.lane, manifest.backend_for_commands, o, flaky.get(str(o.cell), ""), by_cell[o.cell])
        for o in seen
    )
    unexpected = {f.cell for f in failing}
    new = frozenset(str(d.pair.cell) for d in changes if _new(d) and str(d.pair.cell) in unexpected)
    return Lane(run, before, failing, new, tuple(changes))


def _passing(run: Closed, failing: Sequence[Observation]) -> Iterator[PassingCell]:
    """Return the passing cells. They are read only if a cell fails."""
    rows = views.rows(run) if failing else []
    return (PassingCell(CellId(*row[:4]), row.route) for row in rows if row.status == Status.PASS)


def _new(difference: Difference) -> bool:
    """Return whether the cell fails now and did not fail before. A new cell that fails counts."""
    return difference.change in (Change.NEWLY_FAILING, Change.NEW)
