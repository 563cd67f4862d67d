"""The faults in the source of a backend's driver."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# The class of faults that make calls slow and change no result, which `conformance perf` is for.
SPEED = "speed"
# The class of faults that show only in tensors too large for cells. `conformance huge` is for them.
HUGE = "huge"

_FAULT = re.compile(r'^FAULT\((\w+), (\w+),\s*"([^"]*)"\)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Planted:
    """One fault: its class, which says when the fault shows, and a description of its wrong behaviour."""

    kind: str
    description: str


def with_results(project: Path) -> dict[str, Planted]:
    """Return the faults of the distribution in ``project`` that can show in results, memory or errors of a lane."""
    return {name: fault for name, fault in planted(project).items() if fault.kind not in (SPEED, HUGE)}


def planted(project: Path) -> dict[str, Planted]:
    """Return every fault of the distribution in ``project``, in the file's order."""
    return {
        name: Planted(kind, words)
        for file in sorted(project.glob("driver/include/*/faults.def"))
        for name, kind, words in _FAULT.findall(file.read_text(encoding="utf-8"))
    }
