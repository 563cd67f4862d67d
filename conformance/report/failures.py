"""The failing cells of a lane: columns for the list of all, and the contents of their pages, in pieces."""

from __future__ import annotations

from typing import Any

from conformance.explain import describe
from conformance.records import CaseFailure, Death, Observation
from conformance.report import arguments
from conformance.report.cells import Table, Words
from conformance.report.gather import LaneData
from conformance.results import expectations

PIECE = 200  # cells whose pages load together
_SHOWN = 20  # failures of one cell
_LONGEST = 20_000  # characters of one failure
_EXCERPT = 160
_LONGEST_FACT = 200
_IN_TEXT = ("kind", "bound", "pattern")  # facts that the text alone shows

Piece = dict[int, dict[str, Any]]


def columns(lane: LaneData, table: Table) -> dict[str, Any]:
    """Return columns with the number, the kind, the rule and the excerpt of each failing cell.

    The rule is the number, from 1, of the known failure that expects the cell to fail, or 0.
    """
    kinds = Words()
    made: dict[str, Any] = {"cell": [], "kind": [], "rule": [], "excerpt": []}
    numbers: dict[int, int] = {}
    for observation in lane.failing:
        made["cell"].append(table.of(observation.cell))
        made["kind"].append(kinds.number(observation.kind))
        made["rule"].append(_rule(observation, lane, numbers))
        made["excerpt"].append(excerpt(observation))
    known = [{"rule": str(lane.known[n]), "reason": lane.known[n].reason, "link": lane.known[n].link} for n in numbers]
    return {**made, "kinds": kinds.texts, "rules": known}


def _rule(observation: Observation, lane: LaneData, numbers: dict[int, int]) -> int:
    if not is_known(observation, lane):
        return 0
    judged = expectations.judge(observation, lane.known, lane.name)
    at = next(n for n, rule in enumerate(lane.known) if rule is judged.rule)
    return numbers.setdefault(at, len(numbers) + 1)


def is_known(observation: Observation, lane: LaneData) -> bool:
    """Return whether a rule of the known failures expects this failure."""
    if not lane.known:
        return False
    return expectations.judge(observation, lane.known, lane.name).verdict is expectations.Verdict.EXPECTED_FAILURE


def excerpt(observation: Observation) -> str:
    """Return the first finding on one line, shortened."""
    return describe.excerpt(observation)[:_EXCERPT]


def pieces(lane: LaneData, table: Table) -> list[Piece]:
    """Return the pages by the cell's number, :data:`PIECE` cells in each piece, in the order of :func:`columns`."""
    made = []
    for start in range(0, len(lane.failing), PIECE):
        some = lane.failing[start : start + PIECE]
        backend = lane.run.manifest.backend_for_commands
        made.append({n: page(o, backend) for o in some if (n := table.of(o.cell)) is not None})
    return made


def page(observation: Observation, backend: str) -> dict[str, Any]:
    """Return the content of a failing cell's page."""
    o = observation
    return {
        "cases": o.cases, "compared": o.compared, "signal": o.signal, "reason": o.reason,
        "wall_ms": round(o.wall_ns / 1e6, 1), "more": max(0, len(o.failures) - _SHOWN),
        "example": arguments.example(o.cell.layout), "program": o.script,
        "failures": [_failure(f, o, backend) for f in o.failures[:_SHOWN]],
    }  # fmt: skip


def _failure(failure: CaseFailure, observation: Observation, backend: str) -> dict[str, Any]:
    said, commands = "\n".join(describe.findings(failure)), describe.commands(failure, backend)
    return {
        "case": failure.case, "check": failure.check,
        "head": describe.head(failure, observation.cell, observation.route),
        "said": said[:_LONGEST].split("\n"), "cut": len(said) > _LONGEST,
        "facts": _facts(failure), "kernels": list(failure.calls),
        "arguments": [arguments.drawn(a, failure.mismatches) for a in failure.arguments],
        "repeat": commands["repeat"], "script": commands.get("script", ""),
    }  # fmt: skip


def _facts(failure: CaseFailure) -> dict[str, Any]:
    """Return the short facts of the first finding, else of the death. The text has the long facts as well."""
    facts = _of_death(failure.death) if failure.death else {}
    if failure.mismatches:
        facts = {name: v for name, v in failure.mismatches[0].facts.items() if name not in _IN_TEXT}
    shown = {name: value for name, value in facts.items() if value not in ("", None, (), (0, 0))}
    return {name: _shown(value) for name, value in shown.items() if len(str(value)) <= _LONGEST_FACT}


def _of_death(death: Death) -> dict[str, Any]:
    facts: dict[str, Any] = {"signal": death.signal, "side": death.phase}
    if found := death.finding:
        facts |= {"death": found.kind, "alone": found.alone, "again": found.again, "after": found.after}
        facts |= {"confirmed": found.confirmed}
    if report := death.report:
        facts |= {"error": report.kind, "access": report.access, "line": report.line, "function": report.function}
    return facts


def _shown(value: Any) -> Any:
    """Return a float as text, since the page would show -0.0 and 1.0 as integers; return other values as they are."""
    return str(value) if isinstance(value, float) else value
