"""The journal of a lane's latest run in ``results/<lane>/``: observations and summary.

The first line of ``observations.jsonl`` is the run's manifest. Each following line is one observation, written at once,
so a killed run leaves all earlier observations. If the disk is full, an incomplete line is removed. ``summary.json`` is
written atomically when the run ends.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.records import Observation
from conformance.results.store import runs
from conformance.results.store.manifest import Manifest, StoreError
from conformance.support.whole_file import write_text

OBSERVATIONS = "observations.jsonl"
SUMMARY = "summary.json"

_FORMAT = "op-conformance observations"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was read from the store."""

    manifest: Manifest
    observations: tuple[Observation, ...]
    notes: tuple[str, ...] = field(default=())  # problems of the file that did not prevent reading

    @property
    def complete(self) -> bool:
        """Whether the run has an observation of every cell of its lane: it is no shard, and was not killed."""
        told = self.manifest
        return told.complete and not told.shard and len(self.observations) >= told.collected


class Writer:
    """A writer of one run, which replaces an earlier run in the directory.

    Use it as a context manager, and in one process only (with xdist, in the controller).
    """

    def __init__(self, directory: Path, manifest: Manifest, already: Iterable[Observation] = ()) -> None:
        """Begin a run with the observations ``already``. If it raises StoreError, the earlier run is kept."""
        self.directory = directory
        self.path = directory / OBSERVATIONS
        self._manifest = manifest
        self._by_status: Counter[str] = Counter()
        scratch = directory / f"observations.{os.getpid()}.tmp"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = scratch.open("wb", buffering=0)
            self._size = 0
            self._line({"format": _FORMAT, "version": runs.VERSION, **asdict(manifest)})
            for observation in already:
                self.append(observation)
            (directory / SUMMARY).unlink(missing_ok=True)
            scratch.replace(self.path)
        except (OSError, StoreError) as e:
            with contextlib.suppress(OSError):  # the directory may not exist
                scratch.unlink(missing_ok=True)
            if isinstance(e, StoreError):
                raise
            raise StoreError(f"{directory} cannot be written: {e.strerror or e}") from e

    def append(self, observation: Observation) -> None:
        """Write an observation. If it raises StoreError, the file ends with the previous observation."""
        self._line(observation.to_json())
        self._by_status[observation.status.value] += 1

    def finish(self, summary: dict[str, Any]) -> Path:
        """Write the summary, close the file, and store the closed run. Return the path of the summary.

        Raises StoreError if a file cannot be written.
        """
        self.close()
        target = self.directory / SUMMARY
        try:
            write_text(target, json.dumps(summary, indent=1) + "\n")
        except OSError as e:
            raise StoreError(f"{target} cannot be written: {e.strerror or e}") from e
        runs.close(self.directory.parent, self._manifest, self.path, self._by_status, summary)
        return target

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _line(self, record: dict[str, Any]) -> None:
        data = memoryview(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        done = 0
        try:
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError as e:
            with contextlib.suppress(OSError):  # a reader ignores an incomplete line
                self._file.truncate(self._size)
            raise StoreError(f"{self.path} cannot be written: {e.strerror or e}") from e
        self._size += done


def read(path: Path) -> Run:
    """Read a run from its directory or from the file of observations. Raises StoreError."""
    if (path / runs.MANIFEST).is_file():
        closed = runs.opened(path)
        return Run(closed.manifest, runs.load(closed), _lacking(path, closed.manifest, sum(closed.by_status.values())))
    file = path / OBSERVATIONS if path.is_dir() else path
    lines = _text(file).split("\n")
    notes: list[str] = []
    if lines.pop():  # text after the last newline: the writer died in the middle of a line
        notes.append(f"{file}: the last line is incomplete; the run was killed while writing it")
    if not lines:
        raise StoreError(f"{file}: is empty; expected the manifest of a run in line 1")
    manifest, observations = parse(lines, str(file))
    return Run(manifest, observations, (*notes, *_lacking(file, manifest, len(observations))))


def parse(lines: Sequence[str], where: str) -> tuple[Manifest, tuple[Observation, ...]]:
    """Return the manifest and the observations of complete lines of a journal. Raises StoreError.

    ``where``: the beginning of the error's message.
    """
    file = Path(where)
    return _manifest(file, lines[0]), tuple(_observation(file, n, line) for n, line in enumerate(lines[1:], start=2))


def _lacking(file: Path, manifest: Manifest, observed: int) -> tuple[str, ...]:
    if observed >= manifest.collected:
        return ()
    return (f"{file}: {observed} of {manifest.collected} cells observed; the run did not end",)


def read_summary(path: Path) -> dict[str, Any]:
    """Read the summary from a run's directory or from the file. Raises StoreError."""
    file = path / SUMMARY if path.is_dir() else path
    summary = _parse(file, 1, _text(file))
    if "by_status" not in summary:
        raise StoreError(f"{file}: is not a run's summary (no 'by_status')")
    return summary


def find(results: Path, run: str) -> Path:
    """Return the directory of a run, given as a path, a lane's name, or as in :func:`runs.find`. Raises StoreError.

    A lane's own directory holds the last run. If that is a shard, return the lane's latest complete run instead.
    """
    if Path(run).is_file() or (Path(run) / OBSERVATIONS).is_file():
        return Path(run)
    if (file := results / run / OBSERVATIONS).is_file() and not _is_shard(file):
        return results / run
    return runs.find(results, run).directory


def _is_shard(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8") as lines:
            head = next(lines, "").rstrip("\n")
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError(f"{file}: cannot be read: {e}") from e
    return bool(head) and bool(_manifest(file, head).shard)


def _manifest(file: Path, line: str) -> Manifest:
    record = _parse(file, 1, line)
    if record.pop("format", None) != _FORMAT:
        raise StoreError(f"{file}: line 1 is not the manifest of a run; was this file written by another tool?")
    version = record.pop("version", None)
    if version not in runs.READABLE:
        raise StoreError(f"{file}: {runs.unreadable(version)}")
    return Manifest.from_json(record, f"{file}: line 1")


def _observation(file: Path, number: int, line: str) -> Observation:
    record = _parse(file, number, line)
    try:
        return Observation.from_json(record)
    except (KeyError, ValueError, TypeError) as e:
        raise StoreError(f"{file}: line {number}: not an observation: {type(e).__name__}: {e}") from e


def _parse(file: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as e:
        raise StoreError(f"{file}: line {number}: not JSON: {e}") from e
    if not isinstance(record, dict):
        raise StoreError(f"{file}: line {number}: expected a JSON object, got {type(record).__name__}")
    return record


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StoreError(f"{file}: no such file") from None
    except UnicodeDecodeError as e:
        raise StoreError(f"{file}: not UTF-8 text: {e}") from e
