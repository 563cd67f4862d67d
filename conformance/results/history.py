"""The history of a series of closed runs: the differences between two runs, and the flaky cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from conformance.results import diff
from conformance.results.store import Closed, cell_outcomes, runs
from conformance.results.store.manifest import MACHINE
from conformance.vocabulary import CellId, Status

# The number of runs of a series in which flaky cells are searched for, and which a nightly workflow keeps. Reading the
# head of a run takes 2 ms, which makes comparisons over many more runs slow.
NIGHTS = 120


def of_series(results: Path, series: str, among: Sequence[str] | None = None) -> list[Closed]:
    """Return the closed runs of a series, the oldest first. ``among``: see :func:`runs.names`. Raises StoreError."""
    return [runs.opened(results / runs.RUNS / name) for name in runs.names(results, series, among)]


def changes(old: Closed, new: Closed, lane: Sequence[Closed]) -> list[diff.Difference]:
    """Return the cells whose kind differs. ``lane``: all runs of the new run's series. Raises StoreError."""
    pairs = cell_outcomes.differing(old, new)
    covering = [run for run in lane if run.covers(new) and run.name <= new.name]
    history = _history(covering[-NIGHTS:], [p.cell for p in pairs])
    return diff.classify(pairs, diff.Sides(old.covers(new), new.covers(old)), history, notes((old, new)))


def wavering(lane: Sequence[Closed], statuses: Mapping[CellId, Mapping[str, str]]) -> dict[CellId, str]:
    """Return the cells that are flaky over the complete runs of a lane, with the reasons.

    ``statuses``: the status of each cell that ever failed, by the run's name; see views.statuses.
    """
    builds = {run.name: _build(run) for run in lane if run.whole}
    found = {}
    for cell in sorted(statuses, key=str):
        ended = {name: Status(status) for name, status in statuses[cell].items() if status != Status.NOT_REACHED}
        found[cell] = diff.flaky([(b, ended[name].is_failure) for name, b in builds.items() if name in ended])
    return {cell: why for cell, why in found.items() if why}


def notes(compared: Iterable[Closed]) -> dict[str, str]:
    """Return both schemas of each overload that a torch lacks or has with another schema than the corpus."""
    found: dict[str, str] = {}
    for run in compared:
        for overload, (recorded, here) in runs.schemas(run).items():
            said = f"torch {run.manifest.torch} has {here}" if here else f"torch {run.manifest.torch} lacks it"
            found[overload] = f"{found.get(overload, f'recorded as {recorded}')}; {said}"
    return found


def settings(old: Closed, new: Closed) -> list[str]:
    """Return the differences between the machines of two runs, e.g. ``cpu_capability AVX512 -> AVX2``."""
    names = ("python", "compiler", "threads", *MACHINE)
    pairs = ((name, getattr(old.manifest, name), getattr(new.manifest, name)) for name in names)
    return [f"{name} {before or 'unknown'} -> {after or 'unknown'}" for name, before, after in pairs if before != after]


def _history(whole: Sequence[Closed], cells: Sequence[CellId]) -> Mapping[CellId, list[tuple[str, bool]]]:
    """Return for each cell (build, whether the cell failed) of each of these runs."""
    if not cells:
        return {}
    failed = cell_outcomes.failing(whole, cells)
    builds = [(run.name, _build(run)) for run in whole]
    return {cell: [(build, name in failed.get(cell, ())) for name, build in builds] for cell in cells}


def _build(run: Closed) -> str:
    """Return a key of a run: runs with the same key should have the same outcomes.

    Return "" if the backend's source is not known for certain.
    """
    m = run.manifest
    if not m.backend_commit or m.backend_commit.endswith("-dirty"):
        return ""
    alike = (m.torch, m.backend_commit, m.corpus, m.tier, m.seed, m.environment, m.build, m.compiler, m.threads)
    return " ".join(map(str, (*alike, *(getattr(m, name) for name in MACHINE))))
