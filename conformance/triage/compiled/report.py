"""The triage of a compiled program as text, Markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from conformance.support.markup import cell
from conformance.triage.compiled import stages
from conformance.triage.compiled.model import DYNAMO, OWN, PLAIN, Blame, Evidence, Run, Script, Wrong
from conformance.triage.compiled.stages import MEANING, Stage

_CROSSED = {PLAIN: "without torch.compile", "inductor": "inductor"}


def text(e: Evidence) -> str:
    """Return text for a terminal."""
    lines = [headline(e), *(f"  {line}" for line in facts(e)), *(f"  {note}" for note in e.notes), "", "runs:"]
    lines += [f"  {name:<24} {told}" for name, told in _runs(e)]
    lines += ["", "versions:", *(f"  {name + ':':<10} {value}" for name, value in _versions(e))]
    if e.script:
        lines += ["", "script:", e.script.text.rstrip()]
    return "\n".join(lines)


def markdown(e: Evidence) -> str:
    """Return Markdown for an issue."""
    lines = ["# Triage of a compiled program", "", headline(e), "", *(f"- {line}" for line in (*facts(e), *e.notes))]
    lines += ["", "| run | outcome |", "| --- | --- |", *(f"| {name} | {cell(told)} |" for name, told in _runs(e))]
    lines += ["", "| version | |", "| --- | --- |", *(f"| {name} | {cell(value)} |" for name, value in _versions(e))]
    if e.script:
        lines += ["", "```python", e.script.text.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def as_json(e: Evidence) -> str:
    """Return the facts and the stage as JSON."""
    found = stages.stage(e)
    return json.dumps({"stage": found.value if found else "", "evidence": dataclasses.asdict(e)}, indent=1) + "\n"


def headline(e: Evidence) -> str:
    """Return one line: the stage, or that nothing differs."""
    found = stages.stage(e)
    if found is None:
        if not e.complete:
            return "interrupted: nothing has differed so far"
        return _without_a_difference(e)
    so_far = "" if e.complete else "interrupted; so far: "
    return f"{so_far}first difference or error in the stage {found.value!r}: {MEANING[found]}"


def _without_a_difference(e: Evidence) -> str:
    run, own = e.run(OWN), stages.itself(e)
    compared = f"nothing differs: {run.calls} calls of {run.graphs} compiled graphs" if run and run.graphs else ""
    if own:
        before = f"before that, {compared}" if compared else "it compiles nothing before that"
        return f"the program itself fails, also without torch.compile: {own.text()}; {before}"
    return compared or "the program compiles nothing with torch.compile, so there is nothing to compare"


def facts(e: Evidence) -> Iterator[str]:
    """Yield lines about the failure."""
    if e.eager:
        yield f"the first op that is wrong without torch.compile: {e.eager}"
        yield f"find its cause: conformance triage -- python {' '.join(e.program)}"
        return
    if e.differs:
        yield f"with backend {DYNAMO!r}: {e.differs}"
    wrong = stages.failing(e, DYNAMO) or stages.failing(e, OWN)
    if wrong:
        yield from _wrong(wrong)
    if e.blame:
        yield from _blame(e.blame, stages.stage(e) is Stage.BACKEND, wrong)
    if e.script:
        yield from _script(e.script)


def _wrong(wrong: Wrong) -> Iterator[str]:
    yield wrong.text()
    if wrong.compiler:
        yield f"the C++ compiler refuses the generated code: {wrong.compiler}"
    if wrong.where:
        yield f"compiled from {wrong.where}"


def _blame(b: Blame, is_own: bool, wrong: Wrong | None) -> Iterator[str]:
    name = "the program's backend" if is_own else "inductor" if b.backend == OWN else b.backend
    before = _CROSSED.get(b.before, b.before)
    what = "values differ" if wrong and wrong.kind.value == "values" else "the failure begins"
    yield f"{what} between {before} and {name}, of {b.of} (torch's CompilerBisector, {b.runs} compilations)"
    if b.subsystem and b.applied == b.subsystem:
        yield f"subsystem: {b.subsystem}; with another value of this setting all is right"
    elif b.subsystem:
        yield f"subsystem: {b.subsystem}, application {b.number}, from 0: {b.applied or 'not named'}"


def _script(s: Script) -> Iterator[str]:
    yield f"the graph has {s.nodes[1]} calls of {s.nodes[0]}, its arguments {s.elements[1]} of {s.elements[0]} elements"
    if s.kernels:
        yield f"kernels that are generated for it: {', '.join(s.kernels)}"
    if s.on_cpu:
        yield f"the same graph on CPU: {s.on_cpu}"
    yield f"script.py fails in {s.fails[0]} of {s.fails[1]} fresh processes"


def _runs(e: Evidence) -> Iterator[tuple[str, str]]:
    if e.watched >= 0:
        yield "op by op, against CPU", e.eager or f"nothing differs in {e.watched} ops on the device"
    names = {PLAIN: "without torch.compile", DYNAMO: "eager (Dynamo alone)", OWN: f"as it is ({stages.own_backend(e)})"}
    for run in e.runs:
        yield names[run.backend], outcome(run)


def outcome(run: Run) -> str:
    """Return the outcome of one run, on one line."""
    wrong = run.wrong or run.ended
    if run.backend == PLAIN:
        return wrong.text() if wrong else "ends well"
    told = wrong.text() if wrong else "nothing differs"
    told += f"; {run.calls} calls of {run.graphs} graphs compared"
    return told + "".join(f"; {count} not compared: {reason}" for reason, count in run.unjudged)


def _versions(e: Evidence) -> Iterator[tuple[str, str]]:
    for name, value in dataclasses.asdict(e.versions).items():
        if value:
            yield name, value
