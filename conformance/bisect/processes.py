"""Commands that run in sessions of their own, so that they can be killed together with their children."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PATIENCE_S = 5.0  # from SIGTERM to SIGKILL
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
    """The running commands, which can all be killed. Thread-safe."""

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
            process = _started(command, cwd, {**os.environ, **(variables or {})})
            self._running.add(process)
        late = False
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = True
            _end([process])
            out, err = process.communicate()
        finally:
            with self._lock:
                self._running.discard(process)
            if process.poll() is None:  # interrupted by Ctrl-C
                _end([process])
        if self._stopped:
            raise Stopped
        return Ended(process.returncode, out, err, time.monotonic() - started, late)

    def stop(self) -> None:
        """End all running commands, and do not start others."""
        with self._lock:
            self._stopped = True
            _end(list(self._running))


def _started(command: Sequence[str] | str, cwd: Path | None, variables: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command, shell=isinstance(command, str), cwd=cwd, env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as e:
        if e.filename != command[0]:  # the working directory is missing
            raise
        raise FileNotFoundError(f"{command[0]}: no such program; the search needs it, so install it") from e


def _end(commands: Sequence[subprocess.Popen[str]]) -> None:
    """Terminate commands, and kill those that do not end. Build tools start compilers in groups of their own.

    SIGTERM comes first: a killed ``git worktree add`` leaves a repository in which ``git worktree list`` fails.
    """
    leaders = {command.pid for command in commands}
    _signal(leaders, signal.SIGTERM, again=False, seconds=_PATIENCE_S)
    _signal(leaders, signal.SIGKILL, again=True, seconds=10)  # a process may be blocked in the kernel


def _signal(leaders: Collection[int], number: signal.Signals, *, again: bool, seconds: float) -> None:
    """Send a signal to all processes of the sessions, and wait for their end. ``again``: send it repeatedly."""
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, number)
    sent: set[int] = set(leaders)
    deadline = time.monotonic() + seconds
    while (left := _sessions(leaders)) and time.monotonic() < deadline:
        for pid in left if again else left - sent:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        sent |= left
        time.sleep(0.01)


def _sessions(leaders: Collection[int]) -> set[int]:
    """Return the processes of these sessions that are not zombies, if the system has /proc."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The fields after the name, which may contain anything: state, parent, group, session.
            state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if int(session) in leaders and state not in "ZX":
                found.add(int(file.parent.name))
    return found
