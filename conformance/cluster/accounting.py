"""The results of each lane of a cluster run, and their storage: merged, or as an interrupted run with every cell."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.cluster.model import Ended, News, State
from conformance.cluster.planning import LanePlan
from conformance.records import Observation
from conformance.results import expectations, expected_files, joined, resume
from conformance.results.ledger import Ledger
from conformance.results.run_end import RunEnd
from conformance.results.store import Closed, Manifest, journal, runs
from conformance.results.store.manifest import began, run_name, series_of
from conformance.results.summary import Target
from conformance.support.exit_codes import Exit
from conformance.vocabulary import CellId, Status

NOT_BEGUN = "the run ended before its shard began"


@dataclass
class LaneResults:
    """The results of a lane so far. ``results``: the directory of the store."""

    plan: LanePlan
    results: Path
    expected: Path | None = None
    cells: tuple[str, ...] | None = None
    closed: dict[str, Closed] = field(default_factory=dict)  # by shard
    lost: dict[str, str] = field(default_factory=dict)  # why, by shard
    _streamed: dict[str, list[str]] = field(default_factory=dict)  # lines of the latest attempt, by the order's key
    _summaries: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.closed = {closed.manifest.shard: closed for closed in self.plan.ended}

    def news(self, news: News) -> bool:
        """Keep records until the shard ends. Return whether the first of them is the manifest."""
        if not news.lines:
            self._streamed[news.key] = []  # a new attempt
            return False
        lines = self._streamed.setdefault(news.key, [])
        lines.extend(news.lines)
        return len(lines) == len(news.lines)

    def over(self, shard: str, key: str, ended: Ended) -> None:
        """Keep the result of a shard. Raises StoreError if its files cannot be written."""
        if ended.state is State.ENDED:
            self.closed[shard] = runs.put(self.results, ended.run, ended.files)
        if ended.state in (State.ENDED, State.EMPTY):
            self._streamed.pop(key, None)
            return
        self.lost[shard] = ended.reason or NOT_BEGUN
        if summary := ended.files.get(runs.SUMMARY):
            self._summaries.append(json.loads(summary))

    def settle(self, why: str) -> tuple[str, Exit]:
        """Store the lane's run. Return the text for the user and the exit code.

        ``why``: the reason of cells whose shard has none of its own. Raises MergeError, StoreError, TomlError, OSError.
        """
        shards = [*self.closed.values()]
        if not self.lost and shards:
            name, end = joined.join(self.results, shards, self.expected)
            text = f"{name}: of {len(shards)} shard{'s'[: len(shards) != 1]}"
            return (f"{text}\n{end.text}", end.code) if end else (f"{text}, already merged", Exit.OK)
        if not self.lost:
            return f"{self.plan.lane}: no shard has cells", Exit.NONE_SELECTED
        return self._interrupted("; ".join(dict.fromkeys(self.lost.values())) or why)

    def _interrupted(self, reason: str) -> tuple[str, Exit]:
        """Store the records that came, and all other cells as not reached, as the lane's interrupted run."""
        came = _Came.of([*self.closed.values()], self._streamed.values(), self._summaries)
        if came.manifest is None:
            return f"{self.plan.lane}: no results: {reason}", Exit.INTERRUPTED
        cells = {*(self.cells or ()), *came.cells}
        end = _account(self.results, came, cells, reason, self.expected)
        unknown = [] if self.cells else ["the list of the lane's cells did not come; lost shards are not counted"]
        advice = "run again with --resume and the same arguments: shards that ended do not run again"
        lines = [f"{self.plan.lane}: interrupted: {reason}", *unknown, advice, end.text]
        return "\n".join(lines), end.code if end.code in (Exit.RESULTS, Exit.ACCOUNTING) else Exit.INTERRUPTED


@dataclass(frozen=True, slots=True)
class _Came:
    """The records of an interrupted lane, from closed shards and from lost shards."""

    manifest: Manifest | None
    observations: dict[str, Observation]
    summary: dict[str, Any]  # of any shard
    cells: frozenset[str]

    @staticmethod
    def of(closed: Sequence[Closed], streamed: Iterable[list[str]], summaries: Sequence[dict[str, Any]]) -> _Came:
        found = [(c.manifest, runs.load(c)) for c in closed]
        found += [journal.parse(lines, "the records of a shard") for lines in streamed if lines]
        everything = [o for _, observations in found for o in observations]
        reached = {str(o.cell): o for o in everything if o.status is not Status.NOT_REACHED}
        whole = [runs.summary(c) for c in closed]
        return _Came(
            found[0][0] if found else None, reached, next(iter([*whole, *summaries]), {}),
            frozenset(str(o.cell) for o in everything),
        )  # fmt: skip


def _account(results: Path, came: _Came, cells: Collection[str], reason: str, expected: Path | None) -> RunEnd:
    """Write the journal and the closed run with all ``cells``. Raises StoreError, TomlError or OSError."""
    assert came.manifest is not None
    manifest = replace(
        came.manifest, run=run_name(came.manifest.series), collected=len(cells), cells=resume.fingerprint(cells),
        shard="", split_by="",
    )  # fmt: skip
    known = expectations.load(expected_files.of_results(expected, manifest))
    shard = came.summary.get("shard", {})
    targets = [Target(*target) for target in shard.get("targets", ())]
    schemas = {overload: (recorded, here) for overload, (recorded, here) in came.summary.get("schemas", {}).items()}
    directory = results / manifest.series
    resume.set_aside(directory)
    ids = [cell for key in sorted(cells) if (cell := CellId.parse(key))]
    ledger = Ledger(directory, manifest, ids, targets, known, schemas=schemas)
    for observation in came.observations.values():
        ledger.enter(observation)
    for cell in ids:
        if str(cell) not in came.observations:
            ledger.enter(Observation(cell, "", Status.NOT_REACHED, 0, reason=reason))
    return ledger.close(0.0, 0.0)


def unmerged(results: Path) -> list[Closed]:
    """Return the shards in the store that began after the last run of their series that ended, the oldest first.

    Earlier shards belong to that run or to a run that was given up. Raises StoreError.
    """
    ended: dict[str, str] = {}
    for name in runs.names(results):
        if runs.opened(results / runs.RUNS / name).ended:
            ended[series_of(name) or ""] = name
    found = []
    for name in runs.shards(results):
        last = ended.get(series_of(name) or "")
        if last is None or _after(name, last):
            found.append(runs.opened(results / runs.RUNS / name))
    return found


def _after(one: str, other: str) -> bool:
    at, before = began(one), began(other)
    return at is not None and before is not None and at > before
