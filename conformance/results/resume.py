"""What an interrupted run left behind: whether this run may go on from it, and where it is kept when it does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from conformance.records import Observation
from conformance.results import store
from conformance.results.store import Manifest
from conformance.vocabulary import Status

# What may differ between a run and its continuation: what is known only after collecting, which :func:`check` compares,
# the arguments, among which are those that choose no cell, the run's name, and the file of the known failures.
_COMPARED_LATER = {"collected": 0, "cells": "", "arguments": (), "run": "", "expected": ""}


class ResumeError(ValueError):
    """The run that lies there is not one to go on from. The message is one line, and says what differs."""


def fingerprint(cells: Iterable[str]) -> str:
    """A hash of the ids of cells, in whatever order."""
    return hashlib.sha256("\n".join(sorted(cells)).encode()).hexdigest()[:16]


def interrupted(directory: Path) -> bool:
    """Whether a run in ``directory`` observed some of its cells and not all."""
    try:
        counts = store.read_summary(directory)["by_status"]
        return bool(0 < counts[Status.NOT_REACHED.value] < sum(counts.values()))
    except (store.StoreError, KeyError):
        pass  # it did not come to its end
    try:
        with (directory / store.OBSERVATIONS).open(encoding="utf-8") as lines:
            return sum(1 for _ in zip(range(2), lines)) == 2
    except (OSError, UnicodeDecodeError):
        return False


def set_aside(directory: Path) -> Path | None:
    """Keep what an interrupted run observed under another name, ``observations.<n>.jsonl``; None: there is none."""
    if not interrupted(directory):
        return None
    n = 1
    while (kept := directory / f"observations.{n}.jsonl").exists():
        n += 1
    return (directory / store.OBSERVATIONS).rename(kept)


def observed(directory: Path, now: Manifest) -> tuple[Manifest | None, dict[str, Observation]]:
    """The manifest of the run in ``directory`` and what it observed, by cell, if ``now`` continues it.

    (None, nothing) where no run lies there. Raises ResumeError, and StoreError for a file that cannot be read.
    """
    if not (directory / store.OBSERVATIONS).is_file():
        return None, {}
    run = store.read(directory)
    before, after = asdict(replace(run.manifest, **_COMPARED_LATER)), asdict(replace(now, **_COMPARED_LATER))  # type: ignore[arg-type]  # a mapping of several types
    other = [f"{name} {before[name]} then, {after[name]} now" for name in before if before[name] != after[name]]
    if other:
        raise ResumeError(f"{directory} holds another run: {'; '.join(other)}; {_BEGIN_ANEW}")
    return run.manifest, {str(o.cell): o for o in run.observations if o.status is not Status.NOT_REACHED}


_BEGIN_ANEW = "without --resume a new run begins, and keeps what this one observed"


def check(directory: Path, before: Manifest, now: Manifest) -> None:
    """Whether both runs have the same cells. Raises ResumeError."""
    if before.cells != now.cells:
        counts = f"{before.collected} cells then, {now.collected} now"
        raise ResumeError(f"{directory} holds a run of another selection: {counts}; {_BEGIN_ANEW}")
