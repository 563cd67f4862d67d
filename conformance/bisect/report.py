"""The report of a search: Markdown for an issue, and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from conformance.bisect.points import Point
from conformance.bisect.record import Record
from conformance.bisect.search import Answer, Kind, Result, Tally
from conformance.bisect.session import found, seconds_by_point
from conformance.support.lines import last_line
from conformance.support.markup import block, cell

_ENDED = {
    Kind.NOT_BAD: "the bad end passes",
    Kind.NOT_GOOD: "the good end fails as well",
    Kind.ALWAYS: "the oldest version that can be tested fails as well",
    Kind.NO_END: "an end cannot be tested",
}


def as_json(record: Record) -> str:
    """Return :func:`facts` as the text of ``result.json``."""
    return json.dumps(facts(record), indent=1) + "\n"


def facts(record: Record) -> dict[str, Any]:
    """Return the JSON-able facts of the search, also for the page of the report."""
    q = record.question
    results = found(record)
    return {
        "axis": q.axis, "backend": q.backend, "fixed": q.fixed, "command": q.command, "threshold": q.threshold,
        "corpus": q.corpus, "seconds": round(record.seconds, 1), "points_probed": len(_steps(record)),
        "runs": len(record.runs), "points": [asdict(p) for p in q.points],
        "cases": [_case(record, case, results.get(case)) for case in q.cases],
    }  # fmt: skip


def _case(record: Record, case: str, result: Result | None) -> dict[str, Any]:
    q = record.question
    signature = record.signature(case)
    made: dict[str, Any] = {
        "case": case, "kind": result.kind.value if result else "unfinished",
        "signature": {**asdict(signature), "text": signature.text()} if signature else None,
        "minimal": record.minimal.get(case, ""),
        "text": conclusion(record, result), "steps": [],
    }  # fmt: skip
    if result and result.kind in (Kind.CULPRIT, Kind.RANGE):
        before, after = sides(record, result)
        made |= {
            "confidence": round(result.confidence, 4), "before": q.points[before].name, "after": q.points[after].name,
            "first": q.points[result.first].name, "last": q.points[result.last].name,
            "same_build": same_build(record, result), "untested": [q.points[p].name for p in result.untested],
            "output_before": _output(record, case, before), "output_after": _output(record, case, after),
        }  # fmt: skip
    seconds = seconds_by_point(record)
    for number, point in _steps_of(record, case):
        place = record.places.get(point)
        tally = _tally(record, case, point)
        made["steps"].append({
            "number": number, "point": q.points[point].name, "title": q.points[point].title,
            "date": q.points[point].date, "failed": tally.failed, "passed": tally.passed, "unknown": tally.unknown,
            "answer": _answer(record, point, tally), "seconds": round(seconds.get(point, 0.0), 1),
            "build": place.build if place else "", "unusable": place.unusable if place else "",
            "another": _another(record, case, point),
        })  # fmt: skip
    return made


def markdown(record: Record) -> str:
    """Return one text about all cases."""
    results = found(record)
    q = record.question
    what = ("end of a slow-down" if q.fixed else "first slow-down") if q.perf else "fix" if q.fixed else "first failure"
    parts = [f"# Bisect: {what} of {_title(record)}", ""]
    for case in q.cases:
        parts += _about(record, case, results.get(case), heading=len(q.cases) > 1)
    parts += [f"{len(_steps(record))} points, {len(record.runs)} runs, {record.seconds:.0f} s.", ""]
    return "\n".join(parts)


def _title(record: Record) -> str:
    cases = record.question.cases
    return f"`{cases[0]}`" if len(cases) == 1 else f"{len(cases)} cases"


def _about(record: Record, case: str, result: Result | None, heading: bool) -> list[str]:
    lines = [f"## `{case}`", ""] if heading else []
    lines += [f"**{conclusion(record, result)}**", ""]
    signature = record.signature(case)
    if signature:
        lines += [f"The failure: `{signature.text()}`", ""] if not record.question.perf else []
    if result and result.kind in (Kind.CULPRIT, Kind.RANGE):
        before, after = sides(record, result)
        for word, point in (("Before", before), ("After", after)):
            place = record.places.get(point)
            lines += [f"{word}, {_named(record, point)}:", "", *block(_output(record, case, point)), ""]
            if place and place.made_by:
                lines += _folded("made by", block("\n".join(place.made_by)))
    lines += ["| # | point | failed / runs | says | s |", "| --- | --- | --- | --- | --- |"]
    lines += [_row(record, case, number, point) for number, point in _steps_of(record, case)]
    lines.append("")
    if record.minimal.get(case):
        lines += _folded("a script that shows it", block(record.minimal[case], "python"))
    return [*lines, "Repeat:", "", *block(record.question.command, "sh"), ""]


def _row(record: Record, case: str, number: int, point: int) -> str:
    """Return a row of the table of points."""
    tally, place = _tally(record, case, point), record.places.get(point)
    why = place.why if place and place.unusable else ""
    seen = _output(record, case, point) if record.question.perf and not why else _another(record, case, point)
    said = ": ".join(filter(None, (_answer(record, point, tally), why, seen)))
    ran = f"{tally.failed} / {tally.failed + tally.passed}"
    seconds = seconds_by_point(record).get(point, 0)
    return f"| {number} | {cell(_named(record, point))} | {ran} | {cell(said)} | {seconds:.1f} |"


def conclusion(record: Record, result: Result | None) -> str:
    """Return the result in one sentence."""
    if result is None:
        return f"not finished: {len(record.runs)} runs so far"
    q = record.question
    if result.kind not in (Kind.CULPRIT, Kind.RANGE):
        where = f" ({_named(record, result.first)})"
        return f"no culprit: {_ENDED[result.kind]}{where if result.kind is not Kind.ALWAYS else ''}"
    before, after = sides(record, result)
    sure = f"confidence {result.confidence:.1%}"
    last_word, first_word = ("last bad", "first good") if q.fixed else ("last good", "first bad")
    ends = f"{last_word} {_named(record, before)}, {first_word} {_named(record, after)}, {sure}"
    if result.kind is Kind.CULPRIT:
        same = "; both are the same build, so the cause is elsewhere" if same_build(record, result) else ""
        return ends + same
    untested = ", ".join(q.points[p].name for p in result.untested)
    why = f"{untested} could not be tested" if untested else f"no version reaches {q.threshold:.0%}"
    return f"no single culprit: {ends}; {why}"


def sides(record: Record, result: Result) -> tuple[int, int]:
    """Return the points before and after the change."""
    if record.question.fixed:  # the points of the range still fail, so the change follows it
        return result.first, result.last + 1
    return result.first - 1, result.last


def same_build(record: Record, result: Result) -> bool:
    """Return whether both sides of the change are the same build."""
    before, after = (record.places.get(p) for p in sides(record, result))
    return bool(before and after and before.build and before.build == after.build)


def _steps(record: Record) -> list[int]:
    """Return the points in the order of their first test."""
    return list(dict.fromkeys([*record.places, *(r.point for r in record.runs)]))


def _steps_of(record: Record, case: str) -> list[tuple[int, int]]:
    """Return number and point of the steps at which the case ran, or could not run. All cases share the numbers."""
    ran = {r.point for r in record.runs if r.case == case} | {p for p, place in record.places.items() if place.unusable}
    return [(number, point) for number, point in enumerate(_steps(record), start=1) if point in ran]


def _tally(record: Record, case: str, point: int) -> Tally:
    tally = Tally()
    for where, said in record.answers(case):
        if where == point:
            tally = tally.plus(said)
    return tally


def _answer(record: Record, point: int, tally: Tally) -> str:
    place = record.places.get(point)
    if place and place.unusable:
        return "skipped"
    if tally.failed:
        return Answer.BAD.value
    return Answer.UNKNOWN.value if tally.unknown or not tally.passed else Answer.GOOD.value


def _another(record: Record, case: str, point: int) -> str:
    """Return the signature of another failure at a point, "" if there is none."""
    wanted = record.signature(case)
    seen = [r for r in record.runs if r.point == point and r.case == case and not r.passed and r.signature != wanted]
    if not seen:
        return ""
    last = seen[-1]
    return last.signature.text() if last.signature else last_line(last.output)


def _output(record: Record, case: str, point: int) -> str:
    """Return the output of a failing run at a point, else of the first run."""
    runs = [r for r in record.runs if r.point == point and r.case == case]
    chosen = next((r for r in runs if not r.passed), runs[0] if runs else None)
    if chosen is None:
        place = record.places.get(point)
        return place.unusable if place else ""
    return chosen.output


def _named(record: Record, point: int) -> str:
    p: Point = record.question.points[point]
    return " ".join(part for part in (p.name, f"({', '.join(t for t in (p.title, p.date) if t)})") if part != "()")


def _folded(title: str, lines: list[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "</details>", ""]
