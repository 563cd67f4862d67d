"""Processes that must end in time, on machines where many processes wait for a processor."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from conformance.support.time_limits import TimeLimit

_STEP = 0.5  # seconds between two checks of a process


def run(command: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command. Return its exit code, negative for a signal, and what it wrote to stdout and to stderr.

    Raises subprocess.TimeoutExpired after ``seconds``. The time that it waits for a processor does not count.
    """
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,  # not pipes: children of the process may keep them open after its end
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
    limit = TimeLimit(process.pid, seconds)
    while not limit.is_exceeded():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(_STEP, seconds))
    raise subprocess.TimeoutExpired(process.args, seconds)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
