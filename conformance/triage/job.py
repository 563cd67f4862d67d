"""The job of a triage: the program, the lanes, and the start of processes in them."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO

from conformance.backends import Capabilities
from conformance.triage.lanes import ALWAYS
from conformance.triage.warm import Forked, Warm, forkable

AT_ONCE = 2  # concurrent processes
Tell = Callable[[str], None]
Process = subprocess.Popen[bytes] | Forked
Talker = subprocess.Popen[str] | Forked


@dataclass(frozen=True)
class Job:
    """One program and its lanes."""

    backend: Capabilities
    backend_name: str  # the value of --backend
    program: tuple[str, ...]  # a script, or -m and a module, and its arguments
    python: str
    lanes: Mapping[str, Mapping[str, str]]
    pythons: tuple[str, ...]  # interpreters of other environments, for the script
    directory: Path  # for the files of the runs
    timeout: float  # seconds a run may take
    tell: Tell
    warm: Warm | None = None  # forks processes, which is faster than starting them

    def place(self, lane: str) -> Path:
        """Return a lane's own directory."""
        place = self.directory / lane.replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        return place

    def environment(self, lane: str) -> dict[str, str]:
        """Return the environment variables of a process of the lane."""
        return dict(os.environ) | dict(self.lanes[lane])

    def run(self, module: ModuleType, arguments: list[str], lane: str, output: IO[bytes]) -> Process:
        """Start ``python -m module arguments`` in a lane: forked where possible, but never in the lanes ``ALWAYS``."""
        if self.warm and lane not in ALWAYS and forkable(self.lanes[lane]):
            with contextlib.suppress(OSError):  # the warm process has ended
                return self.warm.run(module.__name__, arguments, self.environment(lane), output)
        command = [self.python, "-m", module.__name__, *arguments]
        return subprocess.Popen(command, env=self.environment(lane), stdout=output, stderr=subprocess.STDOUT)

    def talk(self, module: ModuleType, arguments: list[str], lane: str) -> Talker:
        """Start a module in a lane, forked where possible, with text pipes for its standard input and output."""
        if self.warm and forkable(self.lanes[lane]):
            with contextlib.suppress(OSError):
                return self.warm.talk(module.__name__, arguments, self.environment(lane))
        command = [self.python, "-m", module.__name__, *arguments]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(command, env=self.environment(lane), stdin=pipe, stdout=pipe, stderr=nothing, text=True)
