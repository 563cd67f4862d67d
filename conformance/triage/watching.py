"""Runs of a program in every lane with every op compared, and their results."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.support.lines import last_line
from conformance.support.signals import signal_name
from conformance.triage import worker
from conformance.triage.evidence import Found, LaneRun
from conformance.triage.job import AT_ONCE, Job, Process


def watch(job: Job) -> tuple[LaneRun, ...]:
    """Run the program in every lane, some of them concurrently. An interruption ends the runs."""
    *_, runs = watched(job)
    return runs


def watched(job: Job) -> Iterator[tuple[LaneRun, ...]]:
    """Run the program as :func:`watch` does. After each run, yield all ended runs, in the order of the lanes."""
    running: dict[str, tuple[Process, float]] = {}
    try:
        yield from _watched(job, running)
    finally:
        for process, _ in running.values():
            process.kill()
            process.wait()


def _watched(job: Job, running: dict[str, tuple[Process, float]]) -> Iterator[tuple[LaneRun, ...]]:
    """Yield the runs that have ended. ``running``: by lane, a running process and the time of its start."""
    waiting = list(job.lanes)
    done: dict[str, LaneRun] = {}
    told = 0.0
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            lane = waiting.pop(0)
            running[lane] = (_start(job, lane, -1), time.monotonic())
        time.sleep(0.05)
        for lane, (process, started) in list(running.items()):
            late = time.monotonic() - started > job.timeout
            if late:
                process.kill()
            if process.poll() is not None or late:
                done[lane] = _read(job.place(lane), lane, process.wait(), late)
                del running[lane]
                yield tuple(done[lane] for lane in job.lanes if lane in done)
                job.tell(f"[{len(done)}/{len(job.lanes)}] {lane}: {_brief(done[lane])}")
        if time.monotonic() - told > 5:
            told = time.monotonic()
            for lane in running:
                index, op = worker.read_page(job.place(lane))
                job.tell(f"  {lane}: call {index} {op}" if op else f"  {lane}: starting")


def _brief(run: LaneRun) -> str:
    if run.found is None:
        return run.trouble or f"nothing failed in {run.ops} ops"
    return f"{run.found.op} (call {run.found.index}): {run.found.check or run.found.died}"


def _start(job: Job, lane: str, keep: int) -> Process:
    place = job.place(lane)
    (place / worker.FOUND).unlink(missing_ok=True)
    (place / worker.PAGE).unlink(missing_ok=True)
    arguments = [job.backend_name, str(place), str(keep), "--", *job.program]
    with (place / "output").open("wb") as output:
        return job.run(worker, arguments, lane, output)


def _read(place: Path, lane: str, status: int, late: bool) -> LaneRun:
    """Return the result of a finished run. A death is attributed to the running op."""
    if (place / worker.FOUND).is_file():
        left: dict[str, Any] = json.loads((place / worker.FOUND).read_text(encoding="utf-8"))
        found = Found(**left["found"]) if "found" in left else None
        return LaneRun(lane, found, left["ops"], left["unjudged"], left.get("trouble", ""))
    index, op = worker.read_page(place)
    said = (place / "output").read_text(encoding="utf-8", errors="replace").strip()
    if index < 0 or status >= 0:
        return LaneRun(lane, None, max(index, 0), trouble=_without_a_result(status, late, said))
    died = "timeout" if late else signal_name(status)
    return LaneRun(lane, Found(index, op, "", said[:2000], _line_in(said), died=died), index + 1)


def _without_a_result(status: int, late: bool, said: str) -> str:
    """Return how a run without a result ended, if no op can be blamed for that."""
    if late:
        how = "did not end in time, and had called no op"
    elif status < 0:
        how = f"died of {signal_name(status)} before its first op"
    else:
        how = f"ended with exit code {status} and without a result"
    last = last_line(said)
    return f"the run {how}" + (f"; its last line: {last}" if last else "")


def _line_in(said: str) -> str:
    """Return the innermost line outside torch and the suite in a stack that faulthandler printed."""
    frames = [t.strip() for t in said.splitlines() if t.strip().startswith("File ")]
    return next((f for f in frames if "/torch/" not in f and "/conformance/" not in f), "")


def call_file(job: Job, lane: str, found: Found) -> Path | None:
    """Return a file with the failing call, None if the call was not recorded.

    If the call killed its process, run the program again, which writes the file before this call.
    """
    if found.died:
        sequence_file(job, lane, found)
    path = job.place(lane) / worker.CALL
    return path if path.is_file() else None


def sequence_file(job: Job, lane: str, found: Found) -> Path | None:
    """Return a file with the failing call and the calls before it, None if they were not recorded.

    Run the program again to write the file, unless :func:`call_file` did so.
    """
    paths = [job.place(lane) / name for name in (worker.CALL, worker.SEQUENCE)]
    if found.died and paths[1].is_file():
        return paths[1]
    for path in paths:
        path.unlink(missing_ok=True)
    process = _start(job, lane, found.index)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(job.timeout)
    finally:
        process.kill()
        process.wait()
    return paths[1] if paths[1].is_file() else None
