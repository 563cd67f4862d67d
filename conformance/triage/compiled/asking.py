"""Runs of one graph from a file, each in a process of its own: forked, where possible."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.triage.compiled import candidate, dump, running, worker
from conformance.triage.compiled.dump import Dump
from conformance.triage.compiled.model import OWN, Run, Wrong
from conformance.triage.compiled.running import Job
from conformance.triage.warm import Warm

_PRELOAD = ("conformance.triage.compiled.preload",)


class Asker:
    """A runner of graphs in other processes."""

    def __init__(self, job: Job, warm: Warm | None) -> None:
        self._job, self._warm = job, warm
        self._directory = job.directory / "candidate"
        self._directory.mkdir(parents=True, exist_ok=True)
        self.runs = 0

    def run(self, graph: Dump, backend: str = OWN, bisection: Path | None = None, device: str = "") -> Run:
        """Compile and call a graph in another process. Raises ValueError if the graph cannot be stored."""
        self.runs += 1
        file = self._directory / "candidate.pt"
        if unable := dump.save(file, graph):
            raise ValueError(unable)
        for name in (worker.FOUND, worker.PAGE, worker.GRAPH, worker.RESULTS, worker.CODE):
            (self._directory / name).unlink(missing_ok=True)
        request = {"backend": backend, "keep": None, "bisection": str(bisection or "")}
        (self._directory / worker.REQUEST).write_text(json.dumps(request), encoding="utf-8")
        module = self._job.backend.module if self._job.backend else "torch"
        program = ["-m", candidate.__name__, str(file), module, device]
        status = self._start([str(self._directory), "--", *program])
        return running.read(self._directory, backend, status, self._job.timeout)

    def wrong(self, graph: Dump, backend: str = OWN, device: str = "") -> Wrong | None:
        """Return how a graph fails, None if it does not. Raises ValueError if the graph cannot be stored."""
        found = self.run(graph, backend, device=device)
        return found.wrong or found.ended

    def generated(self, graph: Dump) -> str:
        """Return the code that Inductor generates for a graph, "" if it generates none."""
        self.run(graph)
        code = self._directory / worker.CODE
        return code.read_text(encoding="utf-8") if code.is_file() else ""

    def _start(self, arguments: Sequence[str]) -> int | None:
        output, timeout = self._directory / "output", self._job.timeout
        if self._warm is None:
            command = [self._job.python, "-m", worker.__name__, *arguments]
            return running.in_own_group(command, self._job.environment(), output, timeout)
        with output.open("wb") as file:
            process = self._warm.run(worker.__name__, arguments, self._job.environment(), file)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            process.kill()


@contextmanager
def asker(job: Job, graph: Dump) -> Iterator[Asker]:
    """Yield an asker for graphs on the devices of this graph.

    On Linux, the asker forks if the backend's isolation is "fork"; without a backend, if all arguments are on CPU.
    """
    devices = {a.device.type for a in graph.args if hasattr(a, "device")}
    forks = job.backend.isolation == "fork" if job.backend else devices <= {"cpu"}
    if sys.platform != "linux" or not forks:
        yield Asker(job, None)
        return
    with Warm(job.python, _PRELOAD, job.environment()) as warm:
        yield Asker(job, warm)


def until(seconds: float) -> Callable[[], bool]:
    """Return a function that returns whether this many seconds have passed."""
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() > ends
