"""Stored measured runs: ``results/perf/<run>/`` with a manifest, and a line of JSON for each case. No torch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.perf.model import End, Machine, Record
from conformance.results.store import RUNS, StoreError
from conformance.results.store.json_file import read_object
from conformance.results.store.manifest import Manifest, series_of
from conformance.support.suggestions import near
from conformance.support.whole_directory import scratch_beside

PERF = "perf"
MANIFEST = "manifest.json"
RECORDS = "measurements.jsonl"
FORMAT = "op-conformance perf run"
VERSION = 1


@dataclass(frozen=True, slots=True)
class PerfRun:
    """A stored run, which is never changed."""

    directory: Path
    manifest: Manifest
    machine: Machine
    settings: dict[str, Any]  # those of the command
    records: tuple[Record, ...]

    @property
    def name(self) -> str:
        return self.directory.name


def save(
    results: Path, manifest: Manifest, machine: Machine, settings: dict[str, Any], records: Sequence[Record]
) -> Path:
    """Store a run. Return its directory, which gets its name when all files are written. Raises StoreError.

    Each collected case must have a record.
    """
    ends = Counter(record.end for record in records)
    if sum(ends.values()) != manifest.collected:
        raise StoreError(f"{manifest.run}: {sum(ends.values())} records of {manifest.collected} cases; not stored")
    lines = "".join(json.dumps(record.to_json()) + "\n" for record in records)
    told = {
        "format": FORMAT, "version": VERSION, **asdict(manifest), "machine": asdict(machine), "settings": settings,
        "by_end": {end.value: ends[end] for end in End}, "sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }  # fmt: skip
    target = results / PERF / manifest.run
    try:
        with scratch_beside(target) as scratch:
            (scratch / RECORDS).write_text(lines, encoding="utf-8")
            (scratch / MANIFEST).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
            for file in scratch.iterdir():
                file.chmod(0o444)
            scratch.rename(target)
    except OSError as e:
        raise StoreError(f"{target}: cannot be written: {e.strerror or e}") from e
    return target


def names(results: Path) -> list[str]:
    """Return the names of the stored runs, the oldest first."""
    return sorted(f.parent.name for f in (results / PERF).glob(f"*/{MANIFEST}") if not f.parent.name.startswith("."))


def find(results: Path, run: str) -> PerfRun:
    """Find a run by its directory, its name or a part of its name. Raises StoreError, which lists similar names."""
    if (Path(run) / MANIFEST).is_file():
        return load(Path(run))
    known = names(results)
    found = [run] if run in known else [name for name in known if run and run in name]
    if len(found) == 1:
        return load(results / PERF / found[0])
    if found:
        raise StoreError(f"{run!r} matches {len(found)} perf runs, for example {found[-1]} and {found[-2]}")
    raise StoreError(f"no perf run {run!r} in {results / PERF}/; {_instead(results, run, known)}")


def _instead(results: Path, run: str, known: Sequence[str]) -> str:
    close = near(run, known)
    if close:
        return f"near: {', '.join(close)}"
    if any(run in (d.name, series_of(d.name), d.name.rpartition("-")[2]) for d in (results / RUNS).glob("*")):
        return "it names a run of the cells, which has no times; `conformance perf run` makes perf runs"
    return f"perf runs there: {', '.join(known[-3:]) or 'none'}"


def load(directory: Path) -> PerfRun:
    """Read a run. Raises StoreError for a run of another kind, and for damaged or changed files."""
    file = directory / MANIFEST
    told = read_object(file)
    if told.pop("format", None) != FORMAT:
        raise StoreError(f"{file}: is not the manifest of a perf run; expected a directory below {PERF}/")
    version = told.pop("version", None)
    if version != VERSION:
        raise StoreError(f"{file}: format version {version!r}, this suite reads {VERSION}; run again")
    try:
        machine, settings = Machine.from_json(told.pop("machine")), told.pop("settings")
        hashed = told.pop("sha256")
        del told["by_end"]
    except (KeyError, TypeError) as e:
        raise StoreError(f"{file}: {e!r}: expected the manifest of a perf run") from e
    return PerfRun(directory, Manifest.from_json(told, str(file)), machine, settings, _records(directory, hashed))


def _records(directory: Path, hashed: str) -> tuple[Record, ...]:
    file = directory / RECORDS
    try:
        data = file.read_bytes()
    except OSError as e:
        raise StoreError(f"{file}: {e.strerror}") from e
    if hashlib.sha256(data).hexdigest() != hashed:
        raise StoreError(f"{file}: its hash differs from its manifest: the file was changed")
    try:
        return tuple(Record.from_json(json.loads(line)) for line in data.splitlines())
    except (ValueError, KeyError, TypeError) as e:
        raise StoreError(f"{file}: not the records of a perf run: {e!r}") from e
