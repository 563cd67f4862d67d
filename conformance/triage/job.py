"""What triage is asked to look into, with what means, and where it leaves what it finds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.backends import Capabilities

AT_ONCE = 2  # processes side by side
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One program, in so many lanes."""

    backend: Capabilities
    backend_name: str  # as --backend gives it
    program: tuple[str, ...]  # a script, or -m and a module, and its arguments
    python: str
    lanes: Mapping[str, Mapping[str, str]]
    pythons: tuple[str, ...]  # interpreters of other environments, for the script
    directory: Path  # for what the runs leave
    timeout: float  # seconds a run may take
    tell: Tell

    def place(self, lane: str) -> Path:
        """A lane's own directory."""
        place = self.directory / lane.replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        return place

    def environment(self, lane: str) -> dict[str, str]:
        """The variables of a process of the lane."""
        return dict(os.environ) | dict(self.lanes[lane])
