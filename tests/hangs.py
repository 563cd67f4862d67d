"""Processes that hang, and a clock for their parent that runs for no other reason."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NoReturn

import pytest

from conformance.support import time_limits

LONG = 10_000.0  # seconds


class Hangs:
    """What children call to hang. The limits of children are exceeded by that alone, however slow the machine is."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """``folder``: a temporary one."""
        self._folder = folder / "hangs"
        self._folder.mkdir()
        monkeypatch.setattr(time_limits, "time", self)

    def hang(self, *_: object) -> NoReturn:
        os.mkdir(f"{self._folder}/{os.getpid()}")  # noqa: PTH102  # it has no frame of its own in the stack
        while True:
            time.sleep(600)

    def monotonic(self) -> float:
        """Return the seconds that have passed: many for each process that hangs."""
        return LONG * len([*self._folder.iterdir()])
