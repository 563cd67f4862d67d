"""What a report is made of, read from the store and the files beside it; what cannot be read is said and left out."""

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
    """A lane: the run that is shown, and those before it."""

    run: Closed
    failing: Sequence[Observation]
    summary: Mapping[str, Any]  # empty for a run that was cut off
    known: Sequence[KnownFailure]  # of the known failures
    runs: Sequence[Closed]  # up to and with the one shown, the oldest first
    statuses: Mapping[CellId, Mapping[str, str]]  # of the cells that matter: status by run
    before: Closed | None  # what it is compared with
    changes: Sequence[Difference]
    flaky: Mapping[CellId, str]
    later: int = 0  # runs after it that took a part of the cells only

    def rows(self) -> list[Row]:
        """Read every cell of the run. Those of all lanes together may need more memory than there is."""
        return views.rows(self.run)

    @property
    def name(self) -> str:
        return self.run.manifest.series

    @property
    def backend(self) -> str:
        return self.run.manifest.backend


@dataclass(frozen=True, slots=True)
class Found:
    """All of it."""

    lanes: Sequence[LaneData]
    left_out: Sequence[str] = ()  # one line each: what could not be read, and why
    kill_rate: Mapping[str, Any] = field(default_factory=dict)
    perf: Sequence[PerfRun] = ()  # the latest measured run of each lane
    searches: Sequence[Mapping[str, Any]] = ()  # of bisect, as its result.json has them
    broken: bool = False  # a lane, or a run later than the one shown, is among what was left out


def gather(results: Path, expected: Path | None, searches: Iterable[Path], most_runs: int) -> Found:
    """Read everything; ``most_runs``: how many runs of a lane the history goes back. ``expected``: the path of the
    known failures, None for those of each run.

    Raises StoreError where there is no run to show at all.
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
    """For an order of lanes in which 2.8 comes before 2.13."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", lane)]


def _check(results: Path) -> None:
    if not results.is_dir():
        there = "is no directory" if results.exists() else "there is no such directory"
        raise StoreError(f"{results}: {there}; {runs.how_to_have_one(results)}")
    if not runs.every_series(results):
        raise StoreError(f"{results}: holds no closed run; {runs.how_to_have_one(results)}")


def _lane(choice: Choice, expected: Path | None, left_out: list[str]) -> LaneData:
    """All that is shown of a lane. Raises StoreError, or TomlError for the known failures."""
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
    """The cells that waver between runs, and those whose process died in some of several tries of one run."""
    died = {o.cell: "its process dies in some tries, not in all" for o in failing if _dies_at_times(o)}
    died |= {o.cell: "it fails in some fresh processes, not in all" for o in failing if _fails_at_times(o)}
    return died | history_.wavering(lane, statuses)


def _dies_at_times(observation: Observation) -> bool:
    findings = (failure.death.finding for failure in observation.failures if failure.death)
    return any(finding.kind == "flaky" for finding in findings if finding)


def _fails_at_times(observation: Observation) -> bool:
    return any(f.repetition and f.repetition.kind is Repeats.FLAKY for f in observation.failures)


def _summary(run: Closed, left_out: list[str]) -> Mapping[str, Any]:
    """Empty for a run that was cut off, and for a summary that cannot be read, which is then said."""
    try:
        return runs.summary(run)
    except StoreError as e:
        if (run.directory / runs.SUMMARY).exists():
            left_out.append(str(e))
        return {}


def _optional(file: Path, left_out: list[str]) -> Mapping[str, Any]:
    """A JSON object; empty where there is no such file, or where it cannot be read, which is then said."""
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
    """Return the latest measured run of each lane; one that cannot be read is left out."""
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
