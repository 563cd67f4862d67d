"""Closed runs. Each has a directory ``results/runs/<run>/``, which is never changed.

``manifest.json`` describes the run and the other files, ``observations.parquet`` has a row for each cell, and
``summary.json`` is the summary. A run is closed atomically: its directory is written under another name and renamed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.records import Observation
from conformance.results.store import parquet
from conformance.results.store.json_file import read_object, write_object
from conformance.results.store.manifest import Manifest, StoreError, began, lane_of, series_name, series_of, shard_of
from conformance.support.suggestions import near
from conformance.support.whole_directory import scratch_beside
from conformance.support.wording import counted
from conformance.vocabulary import TIERS, Status

RUNS = "runs"
MANIFEST = "manifest.json"
PARQUET = "observations.parquet"
SUMMARY = "summary.json"

FORMAT = "op-conformance run"
VERSION = 3
READABLE = (2, VERSION)  # in version 2 a failure was text

_OWN = {"ended": bool, "by_status": dict, "bytes": int, "sha256": str}  # the fields that a run has when it ends
_STATUSES = frozenset(s.value for s in Status)
_FORGOTTEN = ".forgotten"  # the suffix of a directory that is to be deleted
_BEFORE = re.compile(r"(?P<series>.+)~(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed run: its manifest and the file of its rows."""

    directory: Path
    manifest: Manifest
    ended: bool  # every collected cell was observed
    by_status: dict[str, int]
    bytes: int
    sha256: str
    version: int = VERSION  # of the format of its files

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def failing(self) -> int:
        return sum(n for status, n in self.by_status.items() if Status(status).is_failure)

    @property
    def whole(self) -> bool:
        """Whether the run has the outcome of every cell of its series."""
        return self.manifest.every_cell and self.ended and not self.manifest.shard

    def covers(self, other: Closed) -> bool:
        """Return whether this run has all cells of the other run that exist in its lane.

        If False, the run or its tier may have omitted some of them.
        """
        order = [*TIERS, other.manifest.tier]  # a tier of another version covers itself
        return self.whole and self.manifest.tier in order[: order.index(other.manifest.tier) + 1]

    @property
    def rows(self) -> Path:
        """The Parquet file. Raises StoreError if its size differs from the manifest."""
        file = self.directory / PARQUET
        try:
            found = file.stat().st_size
        except OSError as e:
            raise StoreError(f"{file}: {e.strerror}") from e
        if found != self.bytes:
            raise StoreError(f"{file}: {found} bytes, expected {self.bytes} by its manifest: the file was changed")
        return file

    def check(self) -> None:
        """Raise StoreError if the hash of the rows differs from the manifest."""
        if hashlib.sha256(self.rows.read_bytes()).hexdigest() != self.sha256:
            raise StoreError(f"{self.directory / PARQUET}: its hash differs from its manifest: the file was changed")


def close(
    results: Path, manifest: Manifest, journal: Path, by_status: Mapping[str, int], summary: dict[str, Any] | None
) -> Path:
    """Store a closed run. Return its directory. An existing run of this name is not changed.

    ``by_status`` counts the observations of the ``journal``, which must have complete lines only. Raises StoreError.
    """
    return _keep(results, manifest, lambda rows: parquet.write(journal, rows), by_status, summary)


def join(results: Path, manifest: Manifest, parts: Sequence[Closed], summary: dict[str, Any]) -> Path:
    """Store the rows of several closed runs as one closed run. Return its directory.

    Raises StoreError for a run that was changed, and if a file cannot be written.
    """
    by_status: Counter[str] = Counter()
    for part in parts:
        if part.version != VERSION:
            raise StoreError(
                f"{part.directory / MANIFEST}: format version {part.version}, but merging needs {VERSION}; "
                "merge them with the suite that wrote them, or run the shard again"
            )
        part.check()
        by_status.update(part.by_status)
    return _keep(results, manifest, lambda rows: parquet.join([p.rows for p in parts], rows), by_status, summary)


def _keep(
    results: Path, manifest: Manifest, fill: Callable[[Path], None], by_status: Mapping[str, int],
    summary: dict[str, Any] | None,
) -> Path:  # fmt: skip
    target = results / RUNS / manifest.run
    try:
        with scratch_beside(target) as scratch:
            fill(scratch / PARQUET)
            data = (scratch / PARQUET).read_bytes()
            record = {
                "format": FORMAT, "version": VERSION, **asdict(manifest),
                "ended": _reached(by_status, summary) >= manifest.collected,
                "by_status": {s.value: by_status.get(s, 0) for s in Status},
                "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(),
            }  # fmt: skip
            write_object(scratch / MANIFEST, record)
            if summary is not None:
                write_object(scratch / SUMMARY, summary)
            for file in scratch.iterdir():
                file.chmod(0o444)
            _settle(scratch, target)
    except OSError as e:
        raise StoreError(f"{target}: cannot be written: {e.strerror or e}") from e
    return target


def limited(summary: Mapping[str, Any]) -> int:
    """Return the number of cells that a run did not reach because the primitive that they need is broken."""
    return sum(limit["cells"] for limit in summary.get("limits", ()))


def _reached(by_status: Mapping[str, int], summary: Mapping[str, Any] | None) -> int:
    """Return the number of cells whose outcome is known: a cell that cannot run until a primitive works counts too."""
    return sum(by_status.values()) - by_status.get(Status.NOT_REACHED, 0) + limited(summary or {})


def opened(directory: Path) -> Closed:
    """Open a closed run by its directory. Raises StoreError for a damaged run and for an unknown format."""
    file = directory / MANIFEST
    record = read_object(file)
    if record.pop("format", None) != FORMAT:
        raise StoreError(f"{file}: is not the manifest of a closed run; was this file written by another tool?")
    version = record.pop("version", None)
    if version not in READABLE:
        raise StoreError(f"{file}: {unreadable(version)}")
    own = {name: record.pop(name, None) for name in _OWN}
    for name, kind in _OWN.items():
        if not isinstance(own[name], kind):
            raise StoreError(f"{file}: {name} is {own[name]!r}; expected the manifest of a closed run")
    _check_counts(file, own["by_status"])
    return Closed(directory, Manifest.from_json(record, str(file)), **own, version=version)


def _check_counts(file: Path, by_status: Mapping[str, Any]) -> None:
    """Raise StoreError if a manifest counts a status that this suite does not know."""
    for status, count in by_status.items():
        if status not in _STATUSES or not isinstance(count, int):
            raise StoreError(
                f"{file}: by_status has {count!r} of the status {status!r}; was it written by a later suite?"
            )


def unreadable(version: object) -> str:
    """Return the error for a file in this version of the format."""
    versions = " and ".join(map(str, READABLE))
    return (
        f"format version {version!r}, this suite reads {versions}; read it with the suite that wrote it, or run again"
    )


def listed(results: Path) -> list[str]:
    """Return the names of all directories of closed runs, unsorted. A year of many lanes has a million of them."""
    try:
        with os.scandir(results / RUNS) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def names(results: Path, series: str = "", among: Sequence[str] | None = None) -> list[str]:
    """Return the names of closed runs of one series or of all, the oldest first. Shards do not count until merged.

    ``among``: the result of :func:`listed`, for a caller that asks for several series.
    """
    some = _parts(listed(results) if among is None else among, series)
    return sorted(name for name in some if not shard_of(name) and (found := series_of(name)) and series in ("", found))


def by_series(results: Path) -> dict[str, list[str]]:
    """Return the names of the closed runs of each series, the oldest first. The series are sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names(results):
        found[series_of(name) or ""].append(name)
    return dict(sorted(found.items()))


def shards(results: Path) -> list[str]:
    """Return the names of the closed shards, the oldest first."""
    return sorted(name for name in listed(results) if shard_of(name))


def how_to_have_one(results: Path) -> str:
    """Return the command that makes a closed run if there is none: the merge of the shards, else pytest."""
    if shards(results):
        return f"`conformance merge --results {results}` joins the shards that are there"
    return f"`pytest --pyargs conformance --results {results}` makes one"


def _parts(among: Sequence[str], series: str) -> Sequence[str]:
    """Return the names that contain a series. Most names of a large store are of other series."""
    middle = f"-{series}-"
    return [name for name in among if middle in name] if series else among


def measured(results: Path, series: str) -> Closed | None:
    """Return the run for the durations of cells: the latest whole run of the series, or else its latest.

    If the series has no run, the runs of its lane's own series are used. Raises StoreError.
    """
    among = listed(results)
    found = names(results, series, among) or names(results, lane_of(series), among)
    newest_first = (opened(results / RUNS / name) for name in reversed(found))
    latest = next(newest_first, None)
    if latest is None or latest.whole:
        return latest
    return next((run for run in newest_first if run.whole), latest)


def durations(run: Closed) -> dict[str, int]:
    """Return the nanoseconds of each cell that ran, by id. Raises StoreError."""
    return parquet.durations(run.rows)


def seconds(results: Path, workers: Mapping[str, int]) -> dict[str, float]:
    """Return each lane's duration with its number of ``workers``. Lanes without a complete run are left out."""
    found = {lane: run for lane in workers if (run := measured(results, lane)) and run.whole}
    return {lane: sum(durations(run).values()) / 1e9 / workers[lane] for lane, run in found.items()}


def every_series(results: Path) -> list[str]:
    """Return the series that have closed runs."""
    return list(by_series(results))


def shown_series(results: Path) -> dict[str, list[str]]:
    """Return the names of the runs of each series that stands for its lane, the oldest first.

    A series of runs of some cells (``LANE+part``) is left out, unless its lane has no other series.
    """
    found = by_series(results)
    parts = {series for series in found if series == series_name(lane_of(series), complete=False)}
    others = {lane_of(series) for series in found if series not in parts}
    return {
        series: of_series for series, of_series in found.items() if series not in parts or lane_of(series) not in others
    }


def find(results: Path, run: str, among: Sequence[str] | None = None) -> Closed:
    """Find a closed run by its directory, its name, a part of its name, or its series.

    A series means its latest run, ``LANE~2`` the second run before the latest. ``among``: the result of :func:`listed`.
    Raises StoreError, which names similar runs, or the lanes with runs.
    """
    if (Path(run) / MANIFEST).is_file():
        return opened(Path(run))
    if series_of(run) and (results / RUNS / run).is_dir():
        return opened(results / RUNS / run)
    among = listed(results) if among is None else among
    before = _BEFORE.fullmatch(run)
    series, count = (before["series"], int(before["count"])) if before else (run, 0)
    of_series = names(results, series, among) if series else []
    if of_series:
        if count >= len(of_series):
            oldest = len(of_series) - 1
            raise StoreError(f"{run}: {series} has {counted(len(of_series), 'closed run')}; the oldest is ~{oldest}")
        return opened(results / RUNS / of_series[-1 - count])
    everything = names(results, among=among)
    found = [name for name in everything if run and run in name]
    if len(found) == 1:
        return opened(results / RUNS / found[0])
    if found:
        raise StoreError(f"{run!r} matches {len(found)} runs, for example {found[-1]} and {found[-2]}")
    raise StoreError(f"no closed run {run!r} in {results / RUNS}/; {_there(run, everything)}")


def load(run: Closed) -> tuple[Observation, ...]:
    """Read a run's observations, after a check of their hash. Raises StoreError."""
    run.check()
    return parquet.read(run.rows)


def summary(run: Closed) -> dict[str, Any]:
    """Read a run's summary. Raises StoreError for a run that was killed before its end."""
    file = run.directory / SUMMARY
    if not file.is_file():
        raise StoreError(f"{run.directory}: has no {SUMMARY}: the run was killed before its end")
    return read_object(file)


def schemas(run: Closed) -> dict[str, tuple[str, str]]:
    """Return the overloads whose schema in this run's torch differs from the corpus: both schemas, "" for none."""
    file = run.directory / SUMMARY
    found = read_object(file).get("schemas", {}) if file.is_file() else {}
    return {overload: (recorded, here) for overload, (recorded, here) in found.items()}


def forget(results: Path, keep: int) -> list[str]:
    """Delete all but the latest ``keep`` closed runs of each series, and older shards. Return the deleted names.

    The latest whole run of a series always stays, because new runs are compared with it. Raises StoreError.
    """
    split, series = shards(results), by_series(results)
    dropped = [name for one, of_series in series.items() for name in _old(results, one, of_series, split, keep)]
    try:
        for name in dropped:  # so that a directory that is only partly deleted does not count as a run
            (results / RUNS / name).rename(results / RUNS / f".{name}{_FORGOTTEN}")
        for directory in sorted((results / RUNS).glob(f".*{_FORGOTTEN}")):  # including those of an interrupted call
            shutil.rmtree(directory)
    except OSError as e:
        raise StoreError(f"{e.filename or results / RUNS}: cannot be deleted: {e.strerror or e}") from e
    return dropped


def _old(results: Path, series: str, of_series: Sequence[str], split: Sequence[str], keep: int) -> list[str]:
    latest = of_series[-keep:]
    since = began(latest[0])  # its shards began at the same second or later
    own = (name for name in _parts(split, series) if series_of(name) == series)
    parts = [name for name in own if since and (at := began(name)) and at < since]
    older = of_series[:-keep]
    if not any(opened(results / RUNS / name).whole for name in latest):
        spared = next((name for name in reversed(older) if opened(results / RUNS / name).whole), "")
        older = [name for name in older if name != spared]
    return sorted([*older, *parts])


def _there(run: str, everything: Sequence[str]) -> str:
    known = {series for name in everything if (series := series_of(name))}
    close_ones = near(run.partition("~")[0], [*known, *everything])
    if close_ones:
        return f"near: {', '.join(close_ones)}"
    return f"lanes with runs: {', '.join(sorted(known)) or 'none'}"


def files(directory: Path) -> dict[str, bytes]:
    """Return the content of a closed run's files, by name, for :func:`put` on another machine."""
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}


def put(results: Path, name: str, content: Mapping[str, bytes]) -> Closed:
    """Store a closed run that came from another machine. An existing run of this name is not changed.

    Raises StoreError if it cannot be written, or if it was damaged on the way.
    """
    target = results / RUNS / name
    try:
        with scratch_beside(target) as scratch:
            for file, data in content.items():
                (scratch / file).write_bytes(data)
                (scratch / file).chmod(0o444)
            opened(scratch).check()
            _settle(scratch, target)
    except OSError as e:
        raise StoreError(f"{target}: cannot be written: {e.strerror or e}") from e
    return opened(target)


def _settle(scratch: Path, target: Path) -> None:
    """Rename the directory, unless a run of this name exists."""
    try:
        scratch.rename(target)
    except OSError:
        if not (target / MANIFEST).is_file():
            raise
