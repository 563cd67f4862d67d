"""Which run of a lane a report shows, which before it are its history; those that are not as they were closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.results.store import Closed, StoreError, runs


@dataclass(frozen=True, slots=True)
class Choice:
    """Runs of one lane."""

    shown: Closed
    history: Sequence[Closed]  # up to and with the one shown, the oldest first
    before: Closed | None  # what the one shown is compared with
    later: int  # runs after it, of a part of the cells
    damaged: dict[str, str]  # what is wrong, by the run's name

    @property
    def misses_latest(self) -> bool:
        """Whether a damaged run is later than the one shown, which may then be another than it ought to be."""
        return any(name > self.shown.name for name in self.damaged)


def choose(results: Path, names: Sequence[str], most_runs: int) -> Choice:
    """The latest run of every cell, be it cut off; without one, the latest. Raises StoreError where none is sound.

    ``names``: the runs of one series, the oldest first.

    Rows are held against their hash for the runs that are chosen, ``most_runs`` at most: not for a year of them.
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
    """A run of every cell shown; for one that took a part of them, whichever came before."""
    return next((run for run in reversed(history[:-1]) if run.covers(shown) or not shown.manifest.every_cell), None)


def _opened(results: Path, names: Sequence[str]) -> tuple[list[Closed], dict[str, str]]:
    """The runs whose manifests can be read, the oldest first; what is wrong with the others."""
    opened, damaged = [], {}
    for name in names:
        try:
            opened.append(runs.opened(results / runs.RUNS / name))
        except StoreError as e:
            damaged[name] = str(e)
    return opened, damaged


def _wrong(run: Closed) -> str:
    """What is wrong with a run's rows; empty where they are what was closed."""
    try:
        run.check()
    except StoreError as e:
        return str(e)
    return ""
