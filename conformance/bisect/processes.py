"""Commands that run in sessions of their own, so that they can be killed together with their children."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ERROR = re.compile(r": (?:fatal )?error: |^\s*CMake Error|^\s*\w+Error: ")


class Stopped(Exception):
    """The command was stopped because the search was interrupted."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command."""

    code: int  # the exit code, or minus the signal
    stdout: str
    stderr: str
    seconds: float
    late: bool = False  # it was killed after its timeout

    def last_lines(self, count: int = 6) -> str:
        """Return the last lines of its output."""
        return "\n".join(self._lines()[-count:])

    def errors(self, count: int = 6) -> str:
        """Return the first errors in the output of a compiler or another tool; without any, the last lines."""
        told = [line.strip() for line in self._lines() if _ERROR.search(line)]
        return "\n".join(told[:count]) or self.last_lines(count)

    def _lines(self) -> list[str]:
        return [line for line in (self.stdout + "\n" + self.stderr).splitlines() if line.strip()]


class Processes:
    """Runs commands, and can kill all of them. Thread-safe."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ended:
        """Run a command; a string runs in a shell. ``timeout``: seconds. Raises Stopped, FileNotFoundError."""
        started = time.monotonic()
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command, shell=isinstance(command, str), cwd=cwd, env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                start_new_session=True,
            )  # fmt: skip
            self._running.add(process)
        late = False
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = True
            _kill(process)
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
            if process.poll() is None:  # interrupted by Ctrl-C
                _kill(process)
        if self._stopped:
            raise Stopped
        return Ended(process.returncode, out, err, time.monotonic() - started, late)

    def stop(self) -> None:
        """Kill all running commands, and do not start others."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a command, its process group and its session. Build tools start compilers in groups of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10  # a process may be blocked in the kernel
    while (left := _session(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _session(leader: int) -> list[int]:
    """Return the processes of a session that are not zombies, if the system has /proc."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The fields after the name, which may contain anything: state, parent, group, session.
            state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(file.parent.name))
    return found
