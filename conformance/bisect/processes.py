"""Commands run in process groups of their own, so that they can be stopped together with what they began."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


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
        lines = [line for line in (self.stdout + "\n" + self.stderr).splitlines() if line.strip()]
        return "\n".join(lines[-count:])


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
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
