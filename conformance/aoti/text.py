"""Reports of compiled models as text: a table for a terminal, and rows for the docs. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.aoti.kernels import Triaged, Value, Wrong
from conformance.aoti.model import SWITCH, Advice, Axis, Dimension, End, Finding, Input, Report

COLUMNS = ("differs", "input", "as", "switch unset", "switch set", "what follows")
_STYLES = {End.GARBAGE: "bold red", End.CRASH: "bold magenta", End.NOT_JUDGED: "yellow", End.RIGHT: "cyan"}
_DETAILS = 3  # calls whose outputs are printed


def show(report: Report, console: Console) -> None:
    """Print a report."""
    console.print(Text(f"{report.model} on {report.device}, torch {report.torch}; the switch is {SWITCH}=1", "bold"))
    for line in described(report.inputs):
        console.print(Text(f"  {line}"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for *cells, unset, checked, advice in rows(report.findings):
        table.add_row(*map(Text, cells), _styled(unset), _styled(checked), Text(advice))
    console.print(table)
    for line in _after(report):
        console.print(Text(line), soft_wrap=True)


def _styled(end: str) -> Text:
    return Text(end, next((style for e, style in _STYLES.items() if e == end), ""))


def described(inputs: Sequence[Input]) -> list[str]:
    """Return a line for each input: its name, dtype, and sizes."""
    return [f"{i.name}: {i.given.dtype} [{', '.join(map(_size, i.dimensions))}]" for i in inputs]


def _size(dimension: Dimension) -> str:
    if not dimension.symbol:
        return str(dimension.size)
    high = "" if dimension.high is None else dimension.high
    return f"{dimension.symbol}={dimension.size} in {dimension.low}..{high}"


def rows(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """Return the rows of a table: mismatches of one kind with the same ends share a row."""
    groups: dict[tuple[Axis, str, End | None, End | None, Advice], list[str]] = {}
    for f in findings:
        groups.setdefault((f.axis, f.subject, f.unset, f.set, f.advice), []).append(f.what)
    return [
        (str(axis), subject, "; ".join(whats), str(unset or "not tried"), str(checked or "not tried"), str(advice))
        for (axis, subject, unset, checked, advice), whats in groups.items()
    ]


def _after(report: Report) -> list[str]:
    lines = [""]
    told = [f for f in report.findings if f.advice in (Advice.NOT_CHECKED, Advice.WRONG_PACKAGE)]
    lines += [f"{f.axis} {f.subject} {f.what}: {f.detail}".replace("  ", " ") for f in told]
    bad = [f for f in report.findings if f.advice is Advice.SET_SWITCH]
    if bad:
        lines.append(f"{len(bad)} mismatches end badly unless {SWITCH}=1 is set at run time, for example:")
        lines += [f"  {f.axis} {f.subject} {f.what}: {f.detail}".replace("  ", " ", 1) for f in bad[:_DETAILS]]
    for d in report.deprecated:
        switch = f"{SWITCH}=1" if d.checked else "switch unset"
        lines.append(
            f"deprecated API, {d.axis} {d.subject} {d.what}, {switch}: {d.deprecated}; by the current API: {d.current}"
        )
    return [*lines, *(f"note: {note}" for note in report.notes), _counts(report)]


def _counts(report: Report) -> str:
    counts = {end: sum(e.end is end for e in report.ended) for end in End}
    shown = " + ".join(f"{n} {end}" for end, n in counts.items() if n)
    return f"{len(report.ended)} calls = {shown}"


def triaged(found: Triaged) -> list[str]:
    """Return the lines about a triage."""
    lines = [f"the given package, with {SWITCH}=1: {found.given}"] if found.given else []
    lines.append(f"{found.conclusion}: {found.detail or found.conclusion.meaning}")
    if found.wrong:
        lines += _wrong(found.wrong)
    if found.inputs:
        lines.append("the tensors that it was launched with:")
        lines += [_value(v) for v in found.inputs]
    return [*lines, f"{found.launches} launches, {found.compared} buffers compared with eager"]


def _wrong(wrong: Wrong) -> list[str]:
    ops = ", ".join(wrong.ops) or "no op"
    return [
        f"kernel {wrong.launch.kernel}, launch {wrong.index}",
        f"  its output {wrong.buffer} should be the value of node {wrong.node}, computed by {ops}",
    ]


def _value(value: Value) -> str:
    extremes = "" if value.low is None else f", values {value.low:g} to {value.high:g}"
    return f"  {value.buffer}: {value.dtype} {list(value.size)}, strides {list(value.stride)}{extremes}: {value.file}"


def as_facts(report: Report) -> dict[str, Any]:
    """Return a report for JSON without its calls, which ``--keep`` stores."""
    facts = report.as_dict()
    del facts["ended"]
    return facts


def finding_from(facts: Mapping[str, Any]) -> Finding:
    """Return a finding from its JSON object."""
    unset, checked = (End(facts[key]) if facts[key] else None for key in ("unset", "set"))
    axis, advice = Axis(facts["axis"]), Advice(facts["advice"])
    return Finding(axis, facts["subject"], facts["what"], unset, checked, advice, facts["detail"])
