"""Where a fault lies, and whether the first cause of the failures says so. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from conformance.results.causes import FALLBACK
from conformance.vocabulary import CellId, Route
from tools.causes.clean import Clean

RIGHT, WRONG, UNSEEN = "right", "wrong", "no cell fails"
SHOWN = 3  # causes that are kept of a fault


@dataclass(frozen=True, slots=True)
class Named:
    """A cause, as far as the measurement keeps it."""

    kernel: str
    cells: int
    overloads: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault awake: the cells tried, those that fail, and their first causes."""

    fault: str
    asking: int  # cells of the sample that ask for it
    tried: int
    failing: int
    causes: tuple[Named, ...]
    gate: str  # what the bring-up gate says of it; a run of the suite stops there
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return asdict(self)

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Trial:
        """Inverse of :meth:`to_json`."""
        return Trial(**{**d, "causes": tuple(Named(**c) for c in d["causes"])})


def lies_in(clean: Iterable[Clean]) -> dict[str, frozenset[str]]:
    """Return for each fault the operators whose own code asks for it, at the innermost.

    The code of an operator that the fallback serves, and no native kernel, is the fallback's. Faults that are asked for
    outside of all operators have none.
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


def verdict(trial: Trial, lies: frozenset[str]) -> str:
    """Return whether the first cause is a kernel in which the fault lies."""
    if not trial.causes:
        return UNSEEN
    return RIGHT if trial.causes[0].kernel in lies else WRONG


def summary(
    faults: Iterable[str], trials: Mapping[str, Trial], clean: Mapping[CellId, Clean], torch: str
) -> dict[str, Any]:
    """Return the JSON-able whole: counts, and for each fault where it lies and what was named."""
    places = lies_in(clean.values())
    rows = {f: _row(trials.get(f) or Trial(f, 0, 0, 0, (), "", 0.0), places.get(f, frozenset())) for f in faults}
    counts = {word: sum(row["verdict"] == word for row in rows.values()) for word in (RIGHT, WRONG, UNSEEN)}
    return {
        "faults": len(rows), "right": counts[RIGHT], "wrong": counts[WRONG], "unseen": counts[UNSEEN],
        "cells": len(clean), "torch": torch, "cpu_s": round(sum(t.cpu_s for t in trials.values())), "detail": rows,
    }  # fmt: skip


def _row(trial: Trial, lies: frozenset[str]) -> dict[str, Any]:
    kept = {k: v for k, v in trial.to_json().items() if k not in ("fault", "cpu_s")}
    return {**kept, "lies_in": sorted(lies), "verdict": verdict(trial, lies)}


def lacking(made: Mapping[str, Any], faults: Iterable[str], reasons: Mapping[str, str]) -> list[str]:
    """Return what a summary does not say; empty when it is of just these faults and each miss has a reason."""
    wanted, there = set(faults), set(made["detail"])
    found = [f"{name} was not measured" for name in sorted(wanted - there)]
    found += [f"{name} is no fault any more" for name in sorted(there - wanted)]
    for name, row in made["detail"].items():
        if (row["verdict"] != RIGHT) != (name in reasons):
            found.append(f"{name} ends as {row['verdict']!r}, which tools/causes/reasons.py does not fit")
    return found
