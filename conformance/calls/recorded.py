"""Recorded calls of a user's program as a recorded model."""

from __future__ import annotations

from pathlib import Path

from conformance.calls import file
from conformance.models.model import ModelCall, Recording


def recording_of(path: Path) -> Recording:
    """Return the calls of a file that `conformance record` wrote, named after the file. Raises CallsError.

    Files of older versions store no counts, so each call counts once, and no sizes of results, which then count as 0.
    """
    calls, facts = file.load_all(path)
    counts = facts.get("counts") or [1] * len(calls)
    made = facts.get("made") or [0] * len(calls)
    found = tuple(
        ModelCall(call.case.sample, call.case.placements, call.case.shared, new, {"program": count})
        for call, count, new in zip(calls, counts, made, strict=True)
    )
    return Recording(path.stem, f"recorded in {path}", found, {"versions": {"torch": facts.get("torch", "")}})
