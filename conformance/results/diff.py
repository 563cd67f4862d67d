"""Differences between two runs or between lanes: the class of each cell, the text, and the exit code."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any

from conformance.results.store.cell_outcomes import CellOutcome, Pair
from conformance.support.exit_codes import Exit
from conformance.support.wording import counted
from conformance.vocabulary import CellId, Status

FLAKY_SWITCHES = 3  # a regression and its fix are two switches
_SHOWN = 20


class Change(str, Enum):
    """The class of a difference, in the order of a report."""

    NEWLY_FAILING = "newly failing"
    FLAKY = "flaky"
    CHANGED_KIND = "changed kind"
    NEW = "new"
    GONE = "gone"
    FIXED = "fixed"
    NOT_COMPARED = "not compared"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Difference:
    """One cell whose outcome differs."""

    pair: Pair
    change: Change
    note: str = ""  # why the cell counts as flaky; or the schemas of an overload that one torch lacks or has changed

    def to_json(self) -> dict[str, Any]:
        before, after = self.pair.before, self.pair.after
        return {
            "cell": str(self.pair.cell), "change": str(self.change), "before": before.kind if before else None,
            "after": after.kind if after else None, "case": after.case if after else "", "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sides:
    """Whether each of the two runs has every cell of its lane."""

    old_whole: bool
    new_whole: bool


def classify(
    pairs: Iterable[Pair], sides: Sides, history: Mapping[CellId, Sequence[tuple[str, bool]]], notes: Mapping[str, str]
) -> list[Difference]:
    """Return the differences in the order of :class:`Change`.

    ``history``: for each cell, (build, whether the cell failed) of each run, the oldest first. ``notes``: the note on
    each overload that a torch lacks or has with another schema.
    """
    found = []
    for pair in pairs:
        change, note = _change(pair, sides), ""
        if change in (Change.NEWLY_FAILING, Change.FIXED, Change.CHANGED_KIND):
            note = flaky(history.get(pair.cell, ()))
            change = Change.FLAKY if note else change
        found.append(Difference(pair, change, note or notes.get(pair.cell.overload, "")))
    order = list(Change)
    return sorted(found, key=lambda d: (order.index(d.change), str(d.pair.cell)))


def flaky(history: Sequence[tuple[str, bool]]) -> str:
    """Return why a cell is flaky: one build both failed and passed, or the outcome switched too often. "" if not."""
    verdicts: dict[str, set[bool]] = defaultdict(set)
    for build, failed in history:
        verdicts[build].add(failed)
    if any(build and len(seen) == 2 for build, seen in verdicts.items()):
        return "the same build both failed and passed"
    switches = sum(a[1] != b[1] for a, b in pairwise(history))
    return f"switched {switches} times in {len(history)} runs" if switches >= FLAKY_SWITCHES else ""


def exit_code(differences: Iterable[Difference]) -> Exit:
    """Return the exit code of a diff: NEWLY_FAILING, else DIFFERENT, else OK."""
    seen = {
        Change.NEWLY_FAILING if d.change is Change.NEW and _fails(d.pair.after) else d.change for d in differences
    } - {Change.NOT_COMPARED}
    if Change.NEWLY_FAILING in seen:
        return Exit.NEWLY_FAILING
    return Exit.DIFFERENT if seen else Exit.OK


def text(differences: Sequence[Difference], old: str, new: str, settings: Sequence[str] = ()) -> str:
    """Return text for a terminal: other differences of the runs (``settings``), then the cells of each class."""
    counts = Counter(d.change for d in differences)
    lines = [f"{old} -> {new}", *([f"settings: {'; '.join(settings)}"] if settings else [])]
    lines.append(", ".join(f"{counts[change]} {change}" for change in Change))
    for change in Change:
        cells = [d for d in differences if d.change is change]
        if cells and change is not Change.NOT_COMPARED:
            lines += ["", f"{change} ({len(cells)}):", *(f"  {_line(d)}" for d in cells[:_SHOWN])]
            lines += [f"  ... and {len(cells) - _SHOWN} more"] if len(cells) > _SHOWN else []
    return "\n".join(lines)


def as_json(differences: Sequence[Difference], old: str, new: str, settings: Sequence[str] = ()) -> str:
    """Return the differences of two runs as JSON, with the number of cells of each change."""
    counts = Counter(d.change for d in differences)
    record = {"old": old, "new": new, "settings": list(settings), "counts": {str(c): counts[c] for c in Change}}
    return json.dumps({**record, "cells": [d.to_json() for d in differences]}, indent=1)


@dataclass(frozen=True, slots=True)
class Step:
    """A lane's position on an axis."""

    value: str  # e.g. "2.8"
    whole: bool


def across_text(
    steps: Sequence[Step], cells: Sequence[tuple[CellId, tuple[CellOutcome | None, ...]]], notes: Mapping[str, str]
) -> str:
    """Return the cells whose outcomes differ along an axis, one line for cells of an overload with equal outcomes."""
    groups: dict[tuple[str, str], list[CellId]] = defaultdict(list)
    for cell, outcomes in cells:
        groups[(cell.overload, _way(steps, outcomes))].append(cell)
    overloads = counted(len({overload for overload, _ in groups}), "overload")
    differ = "differs" if len(cells) == 1 else "differ"
    lines = [f"{' · '.join(s.value for s in steps)}: {counted(len(cells), 'cell')} of {overloads} {differ}"]
    for (overload, way), members in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        lines.append(f"  {overload}  {counted(len(members), 'cell')}  {way}; first: {members[0]}")
        if overload in notes:
            lines.append(f"    {notes[overload]}")
    return "\n".join(lines)


def across_json(
    steps: Sequence[Step], cells: Sequence[tuple[CellId, tuple[CellOutcome | None, ...]]], notes: Mapping[str, str]
) -> str:
    """Return the cells that differ between lanes as JSON. A kind is null if the lane has no outcome of the cell."""
    rows = [
        {"cell": str(cell), "kinds": [o.kind if o else None for o in outcomes], "note": notes.get(cell.overload, "")}
        for cell, outcomes in cells
    ]
    return json.dumps({"axis": [s.value for s in steps], "cells": rows}, indent=1)


def gravity(code: Exit) -> int:
    """Return the rank of an exit code. The worst is the greatest."""
    return (Exit.OK, Exit.DIFFERENT, Exit.NEWLY_FAILING).index(code)


def across_code(cells: Sequence[tuple[CellId, tuple[CellOutcome | None, ...]]]) -> Exit:
    """Return NEWLY_FAILING if a cell fails in some lanes only, else DIFFERENT, else OK."""
    if any(len({_fails(o) for o in outcomes if o}) == 2 for _, outcomes in cells):
        return Exit.NEWLY_FAILING
    return Exit.DIFFERENT if cells else Exit.OK


def _way(steps: Sequence[Step], outcomes: Sequence[CellOutcome | None]) -> str:
    """Return the outcomes along an axis, e.g. ``2.6 absent, 2.8 2.10 fail (value), 2.13 pass``."""
    parts: list[tuple[str, list[str]]] = []
    for step, outcome in zip(steps, outcomes):
        kind = outcome.kind if outcome else ("absent" if step.whole else "not run")
        if parts and parts[-1][0] == kind:
            parts[-1][1].append(step.value)
        else:
            parts.append((kind, [step.value]))
    return ", ".join(f"{' '.join(values)} {kind}" for kind, values in parts)


def _change(pair: Pair, sides: Sides) -> Change:
    if pair.before is None:
        return Change.NEW if sides.old_whole else Change.NOT_COMPARED
    if pair.after is None:
        return Change.GONE if sides.new_whole else Change.NOT_COMPARED
    if _fails(pair.before) == _fails(pair.after):
        return Change.CHANGED_KIND
    return Change.NEWLY_FAILING if _fails(pair.after) else Change.FIXED


def _fails(outcome: CellOutcome | None) -> bool:
    return outcome is not None and Status(outcome.status).is_failure


def _line(difference: Difference) -> str:
    pair = difference.pair
    kinds = " -> ".join(o.kind if o else "absent" for o in (pair.before, pair.after))
    case = f"; first: {pair.after.case}" if pair.after and pair.after.case else ""
    note = f"; {difference.note}" if difference.note else ""
    return f"{pair.cell}  {kinds}{case}{note}"
