"""The data of a report, read from the store and the files beside it. Unreadable data is left out, and listed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.bisect import record
from conformance.bisect import report as bisect_report
from conformance.perf import store as perf_store
from conformance.perf.store import PerfRun
from conformance.records import Observation, Repeats
from conformance.report.choice import Choice, choose
from conformance.results import expectations, expected_files
from conformance.results import history as history_
from conformance.results.diff import Difference
from conformance.results.expectations import KnownFailure
from conformance.results.store import Closed, StoreError, runs, views
from conformance.results.store.manifest import series_of
from conformance.results.store.views import Row
from conformance.support.toml_table import TomlError
from conformance.vocabulary import CellId

KILL_RATE = Path("kill-rate") / "summary.json"


@dataclass(frozen=True, slots=True)
class LaneData:
    """A lane: the shown run, and its history."""

    run: Closed
    failing: Sequence[Observation]
    summary: Mapping[str, Any]  # empty if the run was interrupted
    known: Sequence[KnownFailure]  # the rules for this backend
    runs: Sequence[Closed]  # the oldest first; the shown run is the last
    statuses: Mapping[CellId, Mapping[str, str]]  # of the cells that ever failed or changed: status by run
    before: Closed | None  # the run that the shown run is compared with
    changes: Sequence[Difference]
    flaky: Mapping[CellId, str]
    later: int = 0  # number of later runs, which have a part of the cells

    def rows(self) -> list[Row]:
        """Read the rows of all cells of the run. The rows of all lanes may not fit into memory together."""
        return views.rows(self.run)

    @property
    def name(self) -> str:
        return self.run.manifest.series

    @property
    def backend(self) -> str:
        return self.run.manifest.backend


@dataclass(frozen=True, slots=True)
class Found:
    """The data of a report."""

    lanes: Sequence[LaneData]
    left_out: Sequence[str] = ()  # unreadable data, each with the reason on one line
    kill_rate: Mapping[str, Any] = field(default_factory=dict)
    perf: Sequence[PerfRun] = ()  # the latest measured run of each lane
    searches: Sequence[Mapping[str, Any]] = ()  # the facts of bisect's searches, as in result.json
    broken: bool = False  # a lane, or a run later than the shown run, was left out


def gather(results: Path, expected: Path | None, searches: Iterable[Path], most_runs: int) -> Found:
    """Return the data of a report. Raises StoreError if no run can be shown.

    ``expected``: the path of the known failures, None for those of each run. ``most_runs``: the largest number of runs
    in the history of a lane.
    """
    _check(results)
    left_out: list[str] = []
    lanes, broken = [], False
    names = runs.shown_series(results)
    for lane in sorted(names, key=_place):
        try:
            choice = choose(results, names[lane], most_runs)
            lanes.append(_lane(choice, expected, left_out))
        except (StoreError, TomlError) as e:
            left_out.append(f"lane {lane}: {e}")
            broken = True
            continue
        left_out += choice.damaged.values()
        broken |= choice.misses_latest
    if not lanes:
        raise StoreError(f"{results}: no run can be shown; {left_out[0]}")
    kill_rate = _optional(results / KILL_RATE, left_out)
    kept = [facts for directory in searches if (facts := _search(directory / record.STATE, left_out))]
    return Found(lanes, left_out, kill_rate, _perf(results, left_out), kept, broken)


def _place(lane: str) -> list[tuple[int, str]]:
    """Return a sort key of a lane that puts 2.8 before 2.13."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", lane)]


def _check(results: Path) -> None:
    if not results.is_dir():
        there = "is no directory" if results.exists() else "there is no such directory"
        raise StoreError(f"{results}: {there}; {runs.how_to_have_one(results)}")
    if not runs.every_series(results):
        raise StoreError(f"{results}: holds no closed run; {runs.how_to_have_one(results)}")


def _lane(choice: Choice, expected: Path | None, left_out: list[str]) -> LaneData:
    """Return the data of a lane. Raises StoreError, or TomlError for the known failures."""
    shown, history, before = choice.shown, choice.history, choice.before
    views.check(shown)
    changes = history_.changes(before, shown, history) if before else []
    failing = views.failures(shown)
    changed = {d.pair.cell for d in changes if d.pair.before and d.pair.after}
    statuses = views.statuses(history, views.ever_failing(history) | changed)
    known = expectations.load(expected_files.of_results(expected, shown.manifest))
    return LaneData(
        shown, failing, _summary(shown, left_out), known, history, statuses, before, changes,
        _flaky(history, statuses, failing), choice.later,
    )  # fmt: skip


def _flaky(
    lane: Sequence[Closed], statuses: Mapping[CellId, Mapping[str, str]], failing: Iterable[Observation]
) -> dict[CellId, str]:
    """Return the flaky cells with reasons: they waver between runs, or die or fail in only some tries of one run."""
    died = {o.cell: "its process dies in some tries, not in all" for o in failing if _dies_at_times(o)}
    died |= {o.cell: "it fails in some fresh processes, not in all" for o in failing if _fails_at_times(o)}
    return died | history_.wavering(lane, statuses)


def _dies_at_times(observation: Observation) -> bool:
    findings = (failure.death.finding for failure in observation.failures if failure.death)
    return any(finding.kind == "flaky" for finding in findings if finding)


def _fails_at_times(observation: Observation) -> bool:
    return any(f.repetition and f.repetition.kind is Repeats.FLAKY for f in observation.failures)


def _summary(run: Closed, left_out: list[str]) -> Mapping[str, Any]:
    """Return the summary, {} if the run was interrupted or the summary cannot be read, which is then listed."""
    try:
        return runs.summary(run)
    except StoreError as e:
        if (run.directory / runs.SUMMARY).exists():
            left_out.append(str(e))
        return {}


def _optional(file: Path, left_out: list[str]) -> Mapping[str, Any]:
    """Return a summary of the kill-rate, {} if there is no file, or if it is not readable, which is then listed."""
    if not file.exists():
        return {}
    try:
        made = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        left_out.append(f"{file}: cannot be read: {e}")
        return {}
    if isinstance(made, dict) and isinstance(made.get("faults"), int) and isinstance(made.get("lanes"), dict):
        return made
    left_out.append(f"{file}: is not a summary of the kill-rate")
    return {}


def _perf(results: Path, left_out: list[str]) -> list[PerfRun]:
    """Return the latest readable measured run of each lane. Unreadable runs are listed."""
    latest: dict[str | None, PerfRun] = {}
    for name in reversed(perf_store.names(results)):
        if series_of(name) in latest:
            continue
        try:
            latest[series_of(name)] = perf_store.load(results / perf_store.PERF / name)
        except StoreError as e:
            left_out.append(str(e))
    return sorted(latest.values(), key=lambda run: _place(run.manifest.lane))


def _search(file: Path, left_out: list[str]) -> Mapping[str, Any] | None:
    if not file.exists():
        return None
    try:
        return bisect_report.facts(record.load(file))
    except record.RecordError as e:
        left_out.append(str(e))
        return None
