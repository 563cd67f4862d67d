"""The reduction of failing calls, and a script of them that fails each time."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from conformance.calls import file
from conformance.calls.model import Call
from conformance.calls.sequence import Step, lone, names
from conformance.triage import script as script_
from conformance.triage.evidence import Evidence
from conformance.triage.job import Job
from conformance.triage.questions import prober, wrong
from conformance.triage.shrink import shrink

MOST_TRIES = 120  # of the shrinker
MOST_SCRIPTS = 4  # versions to try as a script, the smallest first
RUNS = 2  # runs of a script, which all must fail

Versions = list[list[Step]]  # failing versions of the steps, the largest first


def smaller(job: Job, lane: str, path: Path) -> Versions:
    """Return the call, then each smaller version that still fails alone."""
    (call,) = file.load(path)
    candidate = path.with_name("candidate.safetensors")
    with prober(job, lane) as p:

        def fails(smaller_: Call) -> bool:
            file.save(candidate, [smaller_])
            return wrong(p.ask("judge", str(candidate)))

        calls = shrink(call, fails, MOST_TRIES)
    job.tell(_size([lone(call)], [lone(calls[-1])]))
    return [[lone(c)] for c in calls]


def finish(job: Job, e: Evidence, versions: Versions, lane: str) -> tuple[Evidence, str]:
    """Return the evidence, and the script of the smallest version whose script fails each time.

    If no script fails each time, return that of the smallest version that can be written as a script; "" if there is
    none. A script that fails each time is also run with the job's other interpreters. Whether a call that reads out of
    bounds fails depends on the memory there, so larger versions fail more often.
    """
    if not versions:
        return e, ""
    title = _title(job, versions[0], lane)
    written = job.directory / "script.py"
    notes: tuple[str, ...] = ()
    texts: list[tuple[list[Step], str]] = []
    for steps in [*reversed(versions[-MOST_SCRIPTS:]), versions[0]]:
        try:
            texts.append((steps, script_.script(steps, job.backend, title, e.elsewhere)))
        except ValueError as error:
            notes = (f"no short script: {error}",)
            continue
        written.write_text(texts[-1][1], encoding="utf-8")
        if all(_fails(job, job.python, written, lane) for _ in range(RUNS)):
            notes = (_size(versions[0], steps), f"the script ({_own(texts[-1][1])} of its own) fails when run")
            others = tuple((_torch_of(p), _fails(job, p, written, lane)) for p in job.pythons)
            return replace(e, notes=(*e.notes, *notes), versions=others), texts[-1][1]
    if not texts:
        return replace(e, notes=(*e.notes, *notes)), ""
    steps, text = texts[0]
    written.write_text(text, encoding="utf-8")
    notes = (_size(versions[0], steps), f"the script ({_own(text)} of its own) does not fail each time it is run")
    return replace(e, notes=(*e.notes, *notes)), text


def _title(job: Job, steps: list[Step], lane: str) -> str:
    settings = " ".join(f"{k}={v}" for k, v in job.lanes[lane].items())
    *before, last = names(steps)
    after = f" after {', '.join(before)}," if before else ""
    return f"{last}{after} on {job.backend.device} and on CPU" + (f"; run with {settings}" if settings else "")


def _size(steps: list[Step], small: list[Step]) -> str:
    before, after = (sum(s.call.elements for s in each) for each in (steps, small))
    return f"shrunk from {before} bytes of arguments to {after}"


def _own(text: str) -> str:
    return f"{script_.own_lines(text)} lines"


def _fails(job: Job, python: str, path: Path, lane: str) -> bool:
    """Return whether a script exits with another code than 0, or does not end within the job's timeout."""
    environment, command = job.environment(lane), [python, str(path)]
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=job.timeout)
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode != 0


def _torch_of(python: str) -> str:
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or python
