"""Runs of a program, each in a process of its own, and their results."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.support.lines import last_line
from conformance.support.signals import signal_name
from conformance.triage.compiled import worker
from conformance.triage.compiled.model import PLAIN, Kind, Run, Wrong
from conformance.triage.worker import NOT_COMPILED

#: A graph that is in one of torch's caches is not compiled, so no part of the compiler can be switched off for it.
_VARIABLES = {
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0", "TORCHINDUCTOR_COMPILE_THREADS": "1",
}  # fmt: skip
_LONGEST_LINE = 300  # characters of a line of the program's output


@dataclass(frozen=True)
class Job:
    """A program, its interpreter, a directory for the files of the runs, and the seconds that a run may take."""

    program: tuple[str, ...]
    python: str
    directory: Path
    timeout: float
    tell: Callable[[str], None]
    backend: Any = None  # the Capabilities of a device, None for CPU alone
    backend_name: str = ""

    def environment(self) -> dict[str, str]:
        """Return the variables of every process."""
        return {**os.environ, **_VARIABLES}


def run(
    job: Job, backend: str, keep: tuple[int, int] | None = None, bisection: Path | None = None, place: str = ""
) -> Run:
    """Run the program with a backend. ``keep``: a graph and its call to store, with the arguments.

    ``bisection``: the directory of a bisection's state. ``place``: the name of the directory for the run's files.
    """
    directory = job.directory / (place or backend or "plain")
    directory.mkdir(parents=True, exist_ok=True)
    for name in (worker.FOUND, worker.PAGE, worker.GRAPH, worker.RESULTS):
        (directory / name).unlink(missing_ok=True)
    request = {"backend": backend, "keep": keep, "bisection": str(bisection or "")}
    (directory / worker.REQUEST).write_text(json.dumps(request), encoding="utf-8")
    environment = job.environment() | ({NOT_COMPILED: "1"} if backend == PLAIN else {})
    command = [job.python, "-m", worker.__name__, str(directory), "--", *job.program]
    started = time.monotonic()
    status = in_own_group(command, environment, directory / "output", job.timeout)
    found = read(directory, backend, status, job.timeout)
    return dataclasses.replace(found, seconds=round(time.monotonic() - started, 1))


def in_own_group(command: Sequence[str], environment: Mapping[str, str], output: Path, timeout: float) -> int | None:
    """Run a command. Return its exit code or minus its signal, None if it was killed after ``timeout`` seconds.

    The processes that the command leaves are killed, also if this process is interrupted.
    """
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read(directory: Path, backend: str, status: int | None, timeout: float) -> Run:
    """Return the result that the worker wrote to its directory, or how the worker ended without a result."""
    if (directory / worker.FOUND).is_file():
        left = json.loads((directory / worker.FOUND).read_text(encoding="utf-8"))
        unjudged = tuple((reason, count) for reason, count in left["unjudged"])
        wrong, ended = (wrong_from(left.get(key)) for key in ("wrong", "ended"))
        return Run(
            backend, wrong, ended, left["graphs"], left["calls"], unjudged, tuple(left["names"]), left.get("lost", "")
        )
    died = dead(directory, status, timeout)
    return Run(backend, died if died.graph >= 0 else None, died)


def dead(directory: Path, status: int | None, timeout: float) -> Wrong:
    """Return how a process without a result ended."""
    graph, call, phase = worker.read_page(directory)
    if status is None:
        return Wrong(Kind.HUNG, f"{timeout:g} seconds", phase=phase, graph=graph, call=call)
    if status < 0:
        name = signal_name(status)
        return Wrong(Kind.DIED, name, name, phase=phase, graph=graph, call=call)
    said = (directory / "output").read_text(encoding="utf-8", errors="replace")
    return Wrong(Kind.EXITED, f"exit code {status}: {last_line(said)[:_LONGEST_LINE]}", str(status))


def wrong_from(facts: dict[str, Any] | None) -> Wrong | None:
    """Return a record from its JSON object, None for None."""
    return Wrong(**{**facts, "kind": Kind(facts["kind"])}) if facts else None
