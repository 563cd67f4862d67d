"""The steps of triage: run the program in every lane, test the culprit alone, shrink it, write a script."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from conformance.triage import lanes as lanes_
from conformance.triage.before import what_came_before
from conformance.triage.evidence import Evidence
from conformance.triage.job import Job
from conformance.triage.questions import named, question, shown_in
from conformance.triage.reduction import finish, smaller
from conformance.triage.warm import Warm
from conformance.triage.watching import call_file, sequence_file, watched


def triage(job: Job) -> Iterator[tuple[Evidence, str]]:
    """Yield the evidence and the script of the defect after each step. The script is "" until it is written.

    The last evidence is complete.
    """
    if sys.platform != "linux":
        yield from _triage(job)
        return
    with Warm(job.python) as warm:
        yield from _triage(replace(job, warm=warm))


def _triage(job: Job) -> Iterator[tuple[Evidence, str]]:
    evidence = Evidence(())
    for runs in watched(job):
        single = named(runs, lanes_.SINGLE)
        evidence = Evidence(runs, torch=torch.__version__, single_thread=single, complete=False)
        yield evidence, ""
    steps = _of_the_first(job, evidence) if evidence.first else ()
    script = ""
    for evidence, script in steps:
        yield evidence, script
    yield replace(evidence, complete=True), script


def _of_the_first(job: Job, evidence: Evidence) -> Iterator[tuple[Evidence, str]]:
    """Test the first failing op alone or after earlier calls, and write a script. Yield both after each step."""
    assert evidence.first is not None
    lane, found = evidence.first
    job.tell(f"first: {found.op}, call {found.index}, in lane {lane!r}")
    path = call_file(job, lane, found)
    if path is None:
        note = "the arguments of the op cannot be recorded, so it was not tested alone"
        yield replace(evidence, notes=(note,)), ""
        return
    evidence = question(job, evidence, lane, path)
    yield evidence, ""
    where = shown_in(evidence, lane)
    if dict(evidence.alone).get(where):
        yield finish(job, evidence, smaller(job, where, path), where)
        return
    evidence, steps = what_came_before(job, evidence, lane, sequence_file(job, lane, found))
    yield evidence, ""
    yield finish(job, evidence, steps, lane)


def interpreter(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the interpreter and the program of ``python script.py``, ``script.py`` or similar. Raises ValueError."""
    first, *rest = command or ("",)
    if first.endswith(".py"):
        return sys.executable, tuple(command)
    if Path(first).name.startswith("python") and rest and (rest[0] == "-m" or not rest[0].startswith("-")):
        return (sys.executable if first in ("python", "python3") else first), tuple(rest)
    raise ValueError(f"expected a command like: python script.py ARGUMENTS, got: {' '.join(command) or 'nothing'}")


def program_of(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the interpreter and the program of a command. Raises ValueError, also if the script does not exist."""
    python, program = interpreter(command)
    if program[0] != "-m" and not Path(program[0]).is_file():
        raise ValueError(f"no script {program[0]}")
    return python, program
