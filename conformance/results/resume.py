"""Interrupted runs: whether a new run can continue them, and where their observations are kept if it does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from conformance.records import Observation
from conformance.results import store
from conformance.results.store import Manifest
from conformance.vocabulary import Status

# The fields that may differ between a run and its continuation. Two of them are known only after collection, and
# :func:`check` compares the cells. The others are the arguments, the run's name, the file of known failures, and the
# spelling of the backend.
_COMPARED_LATER = {"collected": 0, "cells": "", "arguments": (), "run": "", "expected": "", "backend_option": ""}


class ResumeError(ValueError):
    """A run that cannot be continued. The message is one line and names the difference."""


def fingerprint(cells: Iterable[str]) -> str:
    """Return a hash of the ids of cells. Their order does not matter."""
    return hashlib.sha256("\n".join(sorted(cells)).encode()).hexdigest()[:16]


def interrupted(directory: Path) -> bool:
    """Return whether a run in ``directory`` observed some of its cells and not all."""
    try:
        summary = store.read_summary(directory)
        counts = summary["by_status"]
        left = counts[Status.NOT_REACHED.value] - store.limited(summary)
        return bool(0 < left < sum(counts.values()))
    except (store.StoreError, KeyError):
        pass  # without a summary, the run did not end
    try:
        with (directory / store.OBSERVATIONS).open(encoding="utf-8") as lines:
            return sum(1 for _ in zip(range(2), lines)) == 2
    except (OSError, UnicodeDecodeError):
        return False


def set_aside(directory: Path) -> Path | None:
    """Rename an interrupted run's observations to ``observations.<n>.jsonl``. Return the path, None without any."""
    if not interrupted(directory):
        return None
    n = 1
    while (kept := directory / f"observations.{n}.jsonl").exists():
        n += 1
    return (directory / store.OBSERVATIONS).rename(kept)


def observed(directory: Path, now: Manifest) -> tuple[Manifest | None, dict[str, Observation]]:
    """Return the manifest of the run in ``directory`` and its observations by cell id, if ``now`` can continue it.

    Without a run there, return None and an empty dict. Raises ResumeError or StoreError.
    """
    if not (directory / store.OBSERVATIONS).is_file():
        return None, {}
    run = store.read(directory)
    before, after = asdict(replace(run.manifest, **_COMPARED_LATER)), asdict(replace(now, **_COMPARED_LATER))  # type: ignore[arg-type]  # a mapping of several types
    other = [f"{name} {before[name]} then, {after[name]} now" for name in before if before[name] != after[name]]
    if other:
        raise ResumeError(f"{directory} holds another run: {'; '.join(other)}; {_BEGIN_ANEW}")
    return run.manifest, {str(o.cell): o for o in run.observations if o.status is not Status.NOT_REACHED}


_BEGIN_ANEW = "run without --resume to begin a new run; the old observations are kept in another file"


def check(directory: Path, before: Manifest, now: Manifest) -> None:
    """Raise ResumeError unless both runs have the same cells."""
    if before.cells != now.cells:
        counts = f"{before.collected} cells then, {now.collected} now"
        raise ResumeError(f"{directory} holds a run of another selection: {counts}; {_BEGIN_ANEW}")
