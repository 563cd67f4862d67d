"""Processes that hang, and a clock for their parent that advances only when a process hangs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NoReturn

import pytest

from conformance.support import time_limits

LONG = 10_000.0  # seconds


class Hangs:
    """A call that hangs a child, and a clock. Only a hang exceeds a child's limit, however slow the machine is."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Create a directory for marks of hanging processes in ``folder``, and replace the clock of time limits."""
        self._folder = folder / "hangs"
        self._folder.mkdir()
        monkeypatch.setattr(time_limits, "time", self)

    def hang(self, *_: object) -> NoReturn:
        os.mkdir(f"{self._folder}/{os.getpid()}")  # noqa: PTH102  # unlike Path.mkdir, it adds no frame to the stack
        while True:
            time.sleep(600)

    def monotonic(self) -> float:
        """Return the time in seconds: ``LONG`` for each process that has hung."""
        return LONG * len([*self._folder.iterdir()])
