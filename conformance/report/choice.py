"""The runs of a lane in a report: the shown run, the runs of its history, and the damaged runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.results.store import Closed, StoreError, runs


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs of one lane."""

    shown: Closed
    history: Sequence[Closed]  # the oldest first; the shown run is the last
    before: Closed | None  # the run that the shown run is compared with
    later: int  # number of later runs, which have a part of the cells
    damaged: dict[str, str]  # the error, by the run's name

    @property
    def misses_latest(self) -> bool:
        """Whether a damaged run is later than the shown run. Undamaged, it might be the shown run."""
        return any(name > self.shown.name for name in self.damaged)


def choose(results: Path, names: Sequence[str], most_runs: int) -> Choice:
    """Choose the latest run of all cells, even if it was interrupted, else the latest run, with its history.

    ``names``: the runs of one series, the oldest first. Only the rows of the runs in the history, at most
    ``most_runs``, are compared with their hash. Raises StoreError if all runs are damaged.
    """
    opened, damaged = _opened(results, names)
    sound: set[str] = set()
    while opened:
        shown = next(
            (run for run in reversed(opened) if run.manifest.every_cell and not run.manifest.shard), opened[-1]
        )
        history = [run for run in opened if run.name <= shown.name][-most_runs:]
        broken = {run.name: wrong for run in history if run.name not in sound and (wrong := _wrong(run))}
        if not broken:
            later = sum(run.name > shown.name for run in opened)
            return Choice(shown, history, _before(history, shown), later, damaged)
        sound |= {run.name for run in history} - set(broken)
        damaged |= broken
        opened = [run for run in opened if run.name not in broken]
    raise StoreError(damaged[max(damaged)])


def _before(history: Sequence[Closed], shown: Closed) -> Closed | None:
    """Return the previous run that covers the shown run. If that has some cells only, return the run before it."""
    return next((run for run in reversed(history[:-1]) if run.covers(shown) or not shown.manifest.every_cell), None)


def _opened(results: Path, names: Sequence[str]) -> tuple[list[Closed], dict[str, str]]:
    """Return the runs whose manifests can be read, the oldest first, and the errors of the others by name."""
    opened, damaged = [], {}
    for name in names:
        try:
            opened.append(runs.opened(results / runs.RUNS / name))
        except StoreError as e:
            damaged[name] = str(e)
    return opened, damaged


def _wrong(run: Closed) -> str:
    """Return the error if the rows of a run differ from their hash, else ""."""
    try:
        run.check()
    except StoreError as e:
        return str(e)
    return ""
