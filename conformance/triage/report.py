"""The report of triage as text, Markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from conformance.support.lines import first_line
from conformance.support.markup import cell
from conformance.support.wording import counted
from conformance.triage import conclusions
from conformance.triage.evidence import Evidence, LaneRun


def text(e: Evidence, script: str) -> str:
    """Return text for a terminal."""
    lines = [headline(e), *(f"  {note}" for note in e.notes), "", "runs:"]
    lines += [f"  {run.lane:<16} {outcome(run)}" for run in e.runs]
    if e.first:
        lines += ["", "hypotheses:"]
        for v in conclusions.conclusions(e):
            lines += [f"  {v.hypothesis + ':':<21} {v.ruling.value}", *(f"      {b}" for b in v.because)]
        lines += ["", "script:", script.rstrip()]
    return "\n".join(lines)


def markdown(e: Evidence, script: str) -> str:
    """Return Markdown for an issue."""
    lines = ["# Triage", "", headline(e), "", *(f"- {n}" for n in e.notes), "", "| run | outcome |", "| --- | --- |"]
    lines += [f"| {run.lane} | {cell(outcome(run))} |" for run in e.runs]
    if e.first:
        lines += ["", "| hypothesis | ruling | evidence |", "| --- | --- | --- |"]
        lines += [
            f"| {v.hypothesis} | {v.ruling.value} | {cell('; '.join(v.because))} |" for v in conclusions.conclusions(e)
        ]
        lines += ["", "```python", script.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def as_json(e: Evidence, script: str) -> str:
    """Return the facts and the conclusions as JSON."""
    found: dict[str, Any] = {"culprit": conclusions.culprit(e) if e.first else "", "evidence": dataclasses.asdict(e)}
    found["verdicts"] = [
        {"hypothesis": v.hypothesis, "ruling": v.ruling.value, "because": list(v.because)}
        for v in conclusions.conclusions(e)
    ]
    return json.dumps(found | {"script": script}, indent=1) + "\n"


def headline(e: Evidence) -> str:
    """Return one or two lines: the first failing op, and its faulty primitive, or why there is none."""
    if e.first is None:
        return _without_a_finding(e)
    lane, found = e.first
    at = conclusions.culprit(e)
    path = " -> ".join(dict.fromkeys(k.name for k in e.kernels)) or found.op
    named = f"{at}, called by {found.op}" if at != found.op else found.op
    after = f", after {', '.join(e.needed)}" if e.needed else ""
    place = f"\n  called from {found.where}" if found.where else ""
    so_far = "" if e.complete else "interrupted; so far: "
    return f"{so_far}first failing op: {named}{after} (call {found.index} of the program, lane {lane!r}; {path}){place}"


def _without_a_finding(e: Evidence) -> str:
    ran = f"{counted(e.ops, 'op')} of {counted(len(e.runs), 'run')}"
    if not e.complete:
        return f"interrupted: nothing has failed so far in {ran}"
    if e.troubled:
        first = e.troubled[0]
        many = f"in {len(e.troubled)} of {counted(len(e.runs), 'run')}"
        return (
            f"the program itself failed {many}, and no op before that did; nothing failed in {ran}\n"
            f"  first in lane {first.lane!r}: {first_line(first.trouble)}"
        )
    if not e.ops:
        return "the program called no op on the device, so nothing was compared"
    if not e.judged:
        return f"none of {counted(e.ops, 'op')} on the device could be compared with CPU"
    return f"nothing failed in {ran}"


def outcome(run: LaneRun) -> str:
    """Return the outcome of one run, on one line."""
    if run.found is None:
        return run.trouble or f"nothing failed in {run.ops} ops" + (f", {run.unjudged} not judged" * bool(run.unjudged))
    found = run.found
    how = f"died of {found.died}" if found.died else f"{found.check}: {found.message}"
    return f"call {found.index}, {found.op}: {how}"
