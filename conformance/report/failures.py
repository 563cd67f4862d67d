"""The failing cells of a lane: columns for the list of all, and what the page of each shows, in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.explain import describe
from conformance.report import arguments
from conformance.report.cells import Table, Words
from conformance.report.gather import LaneData
from conformance.results import expectations
from conformance.results.store.compare import Outcome
from conformance.vocabulary import CaseFailure, Observation

PIECE = 200  # cells whose pages load together
_SHOWN = 20  # failures of one cell
_LONGEST = 20_000  # characters of one message
_EXCERPT = 160

Piece = dict[int, dict[str, Any]]


def columns(lane: LaneData, table: Table) -> dict[str, Any]:
    """Of each failing cell: its number, kind, whether a rule expects it (rule's number from 1, or 0), an excerpt."""
    kinds = Words()
    made: dict[str, Any] = {"cell": [], "kind": [], "rule": [], "excerpt": []}
    numbers: dict[int, int] = {}
    for observation in lane.failing:
        made["cell"].append(table.of(observation.cell))
        made["kind"].append(kinds.number(kind(observation)))
        made["rule"].append(_rule(observation, lane, numbers))
        made["excerpt"].append(excerpt(observation))
    known = [{"rule": str(lane.rules[n]), "reason": lane.rules[n].reason, "link": lane.rules[n].link} for n in numbers]
    return {**made, "kinds": kinds.texts, "rules": known}


def _rule(observation: Observation, lane: LaneData, numbers: dict[int, int]) -> int:
    if not is_known(observation, lane):
        return 0
    judged = expectations.judge(observation, lane.rules, lane.name)
    at = next(n for n, rule in enumerate(lane.rules) if rule is judged.rule)
    return numbers.setdefault(at, len(numbers) + 1)


def is_known(observation: Observation, lane: LaneData) -> bool:
    """Whether a rule of the known failures expects this one."""
    if not lane.rules:
        return False
    return expectations.judge(observation, lane.rules, lane.name).verdict is expectations.Verdict.EXPECTED_FAILURE


def kind(observation: Observation) -> str:
    """E.g. ``fail (stride, value)``, ``crash (SIGSEGV)``."""
    checks = tuple(sorted({f.check for f in observation.failures}))
    return Outcome(observation.status, checks, observation.signal).kind


def excerpt(observation: Observation) -> str:
    """What went wrong first, on one line."""
    if not observation.failures:
        return observation.reason[:_EXCERPT]
    first = observation.failures[0]
    found = arguments.parts(first.message, first.case)
    text = (found["said"] if found["repeat"] else [found["head"]]) or [found["head"]]
    return str(text[0]).removeprefix(f"{first.check}: ")[:_EXCERPT]


def pieces(lane: LaneData, table: Table) -> list[Piece]:
    """The pages' content by the cell's number, :data:`PIECE` cells a piece, in the order of :func:`columns`."""
    made = []
    for start in range(0, len(lane.failing), PIECE):
        some = lane.failing[start : start + PIECE]
        made.append({n: page(o, lane.backend) for o in some if (n := table.of(o.cell)) is not None})
    return made


def page(observation: Observation, backend: str) -> dict[str, Any]:
    """All that is known of a failing cell."""
    o = observation
    return {
        "cases": o.cases, "compared": o.compared, "signal": o.signal, "reason": o.reason,
        "wall_ms": round(o.wall_ns / 1e6, 1), "more": max(0, len(o.failures) - _SHOWN),
        "example": arguments.example(o.cell.layout), "program": o.script,
        "failures": [_failure(f, backend) for f in o.failures[:_SHOWN]],
    }  # fmt: skip


def _failure(failure: CaseFailure, backend: str) -> dict[str, Any]:
    cut = len(failure.message) > _LONGEST
    found = arguments.parts(failure.message, failure.case)
    if cut:
        found |= _shortened(found)
    commands = {
        "repeat": describe.repeat(failure.case, backend),
        "script": describe.script(failure.case, backend),
    }
    return {
        "case": failure.case, "check": failure.check, "figures": _figures(failure.figures), "cut": cut, **found,
        **commands,
    }  # fmt: skip


def _shortened(found: Mapping[str, Any]) -> dict[str, Any]:
    said: Sequence[str] = "\n".join(found["said"])[:_LONGEST].split("\n")
    return {"head": found["head"][:_LONGEST], "said": list(said)}


def _figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are short: lists of stack frames and the like are in the message already."""
    return {name: value for name, value in figures.items() if len(str(value)) <= 200}
