"""Processes that have to end in time, on machines where many wait for a processor."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_STEP = 0.5  # seconds between two looks at a process
_MOST = 20  # times its limit, a process may take however many wait for a processor


class Limit:
    """The seconds that a process may take from now on, without those that it waits for a processor."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._seconds = pid, seconds
        self._began, self._waited = time.monotonic(), dict[int, float]()

    def is_exceeded(self) -> bool:
        """Return whether the process has taken longer, as far as it was asked meanwhile, or many times as long."""
        self._waited |= waited_for_processor(self._pid)
        taken = time.monotonic() - self._began
        return taken - sum(self._waited.values()) > self._seconds or taken > _MOST * self._seconds


def run(command: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command. Return its exit code, or minus a signal's number, and what it wrote to stdout and to stderr.

    Raises subprocess.TimeoutExpired if it takes more than ``seconds``, without those that it waited for a processor.
    """
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,  # and no pipes: what the process started may hold them longer than it lives
        subprocess.Popen(command, stdout=output, stderr=errors, env=variables) as process,
    ):
        try:
            code = _end_of(process, seconds)
        except BaseException:
            process.kill()
            raise
        return code, _text(output), _text(errors)


def _end_of(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Return the exit code of a process. Raises subprocess.TimeoutExpired as :func:`run` does."""
    limit = Limit(process.pid, seconds)
    while not limit.is_exceeded():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(_STEP, seconds))
    raise subprocess.TimeoutExpired(process.args, seconds)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def waited_for_processor(pid: int) -> dict[int, float]:
    """Return the seconds that a process and its descendants could have run, but others did; nothing if Linux lacks it.

    https://docs.kernel.org/scheduler/sched-stats.html: the second number of ``schedstat``, of a process's first thread.
    """
    found: dict[int, float] = {}
    left = [pid]
    while left:
        each = left.pop()
        with suppress(OSError, ValueError, IndexError):
            found[each] = int(Path(f"/proc/{each}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
            left += map(int, Path(f"/proc/{each}/task/{each}/children").read_text(encoding="ascii").split())
    return found
