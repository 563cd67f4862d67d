"""Processes that have to end in time, on machines where many wait for a processor."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from conformance.support.time_limits import TimeLimit

_STEP = 0.5  # seconds between two looks at a process


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
    limit = TimeLimit(process.pid, seconds)
    while not limit.is_exceeded():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(_STEP, seconds))
    raise subprocess.TimeoutExpired(process.args, seconds)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
