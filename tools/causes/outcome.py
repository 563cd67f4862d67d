"""The operators in which a fault lies, and whether the first cause of the failures is one of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from conformance.results import causes
from conformance.results.causes import FALLBACK, Cause, PassingCell
from conformance.vocabulary import CellId, Route, Status
from tools.causes.clean import Clean
from tools.causes.trial import Trial

RIGHT, WRONG, UNSEEN = "right", "wrong", "no cell fails"
SHOWN = 3  # causes to keep for a fault


def lies_in(clean: Iterable[Clean]) -> dict[str, frozenset[str]]:
    """Return for each fault the innermost operators that run when code asks for the fault.

    An operator that the fallback serves, and that has no native kernel, counts as the fallback. A fault that is asked
    for only outside of all operators has no operator.
    """
    found: dict[str, set[str]] = {}
    served: dict[str, set[str]] = {}  # the routes of an operator's cells
    for one in clean:
        served.setdefault(one.cell.operator, set()).add(one.route)
        for fault, operator in one.asked:
            found.setdefault(fault, set()).update({operator} - {""})
    return {
        fault: frozenset(FALLBACK if _falls_back(served.get(name, ())) else name for name in names)
        for fault, names in found.items()
    }


def _falls_back(routes: Collection[str]) -> bool:
    return Route.FALLBACK.value in routes and Route.NATIVE.value not in routes


def causes_of(trial: Trial, clean: Iterable[Clean]) -> list[Cause]:
    """Return the causes of a trial's failing cells. Cells that do not ask for the fault keep their clean outcome."""
    tried = set(trial.passing)
    return causes.causes(
        trial.failing,
        [
            PassingCell(one.cell, one.route)
            for one in clean
            if one.cell in tried or (one.status == Status.PASS and trial.fault not in one.faults)
        ],
    )


def verdict(found: Sequence[Cause], lies: frozenset[str]) -> str:
    """Return whether the first cause is a kernel in which the fault lies."""
    if not found:
        return UNSEEN
    return RIGHT if found[0].kernel in lies else WRONG


def summary(
    faults: Iterable[str], trials: Mapping[str, Trial], clean: Mapping[CellId, Clean], torch: str
) -> dict[str, Any]:
    """Return the JSON-able summary: counts, and for each tried fault where it lies and its first causes."""
    places = lies_in(clean.values())
    rows = {f: _row(trials[f], clean.values(), places.get(f, frozenset())) for f in faults if f in trials}
    return _counted(rows, len(clean), torch, round(sum(t.cpu_s for t in trials.values())))


def joined(published: Mapping[str, Any], made: Mapping[str, Any], faults: Iterable[str]) -> dict[str, Any]:
    """Return a summary of both measurements, with the faults in this order. Faults not among these are left out.

    The CPU seconds add up; the number of cells is that of ``made``. Raises ValueError if the versions of torch differ.
    """
    if published["torch"] != made["torch"]:
        raise ValueError(f"a measurement with torch {made['torch']} cannot join one with {published['torch']}")
    cpu_s = published["cpu_s"] + made["cpu_s"]
    return restricted({**made, "detail": published["detail"] | made["detail"], "cpu_s": cpu_s}, faults)


def restricted(made: Mapping[str, Any], faults: Iterable[str]) -> dict[str, Any]:
    """Return a summary without faults that are not among these, in this order. The time that they took remains."""
    rows = {fault: made["detail"][fault] for fault in faults if fault in made["detail"]}
    return _counted(rows, made["cells"], made["torch"], made["cpu_s"])


def _counted(rows: Mapping[str, Mapping[str, Any]], cells: int, torch: str, cpu_s: int) -> dict[str, Any]:
    counts = {word: sum(row["verdict"] == word for row in rows.values()) for word in (RIGHT, WRONG, UNSEEN)}
    return {
        "faults": len(rows), "right": counts[RIGHT], "wrong": counts[WRONG], "unseen": counts[UNSEEN],
        "cells": cells, "torch": torch, "cpu_s": cpu_s, "detail": rows,
    }  # fmt: skip


def _row(trial: Trial, clean: Iterable[Clean], lies: frozenset[str]) -> dict[str, Any]:
    found = causes_of(trial, clean)
    return {
        "lies_in": sorted(lies), "verdict": verdict(found, lies), "gate": trial.gate, "asking": trial.asking,
        "tried": len(trial.failing) + len(trial.passing), "failing": len(trial.failing),
        "causes": [{"kernel": c.kernel, "cells": len(c.cells), "overloads": len(c.overloads)} for c in found[:SHOWN]],
    }  # fmt: skip


def lacking(made: Mapping[str, Any], faults: Iterable[str], reasons: Mapping[str, str]) -> list[str]:
    """Return the errors of a summary. It has none if it covers only these faults and each wrong cause has a reason.

    A fault whose first cause is right must not have a reason. A fault with which no cell fails may have a reason.
    """
    found = [f"{name} is no fault any more" for name in sorted(set(made["detail"]) - set(faults))]
    for name, row in made["detail"].items():
        if row["verdict"] == (RIGHT if name in reasons else WRONG):
            found.append(f"{name} ends as {row['verdict']!r}, which tools/causes/reasons.py does not fit")
    return found
