"""Commands run in sessions of their own, so that they can be stopped together with all that they began."""

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
    """How a command ended."""

    code: int  # negative: the signal that killed it
    stdout: str
    stderr: str
    seconds: float
    late: bool = False  # it took longer than it was given, and was killed

    def last_lines(self, count: int = 6) -> str:
        """What it said last, for a person."""
        return "\n".join(self._lines()[-count:])

    def errors(self, count: int = 6) -> str:
        """The first errors that a compiler or another tool told; where there is none, what it said last."""
        told = [line.strip() for line in self._lines() if _ERROR.search(line)]
        return "\n".join(told[:count]) or self.last_lines(count)

    def _lines(self) -> list[str]:
        return [line for line in (self.stdout + "\n" + self.stderr).splitlines() if line.strip()]


class Processes:
    """Starts commands and knows those that run. May be used from several threads."""

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
        """Run a command, in a shell if it is one text; ``timeout`` in seconds. Raises Stopped, FileNotFoundError."""
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
            if process.poll() is None:  # Ctrl-C came while waiting for it
                _kill(process)
        if self._stopped:
            raise Stopped
        return Ended(process.returncode, out, err, time.monotonic() - started, late)

    def stop(self) -> None:
        """Kill everything that runs; whatever is started after this is refused."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a command, its process group, and its session: a build tool gives each compiler a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10  # for one that the kernel holds
    while (left := _session(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _session(leader: int) -> list[int]:
    """The living processes of a session, where the system lists them in /proc; zombies do not count."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything: state, parent, group, session.
            state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(file.parent.name))
    return found
