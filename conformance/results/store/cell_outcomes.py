"""Outcomes of the same cells in several closed runs: the differences, and the history of failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.records import kind_of
from conformance.results.store import parquet
from conformance.results.store.parquet import CELL
from conformance.results.store.runs import Closed
from conformance.vocabulary import CellId, Status

# The kind of an outcome: status, failed checks, and the signal of a failure. If a cell does not fail, its signal killed
# the CPU reference, and which signal that is depends on chance. A cell that was not reached has no outcome.
_KIND = """status, list_sort(list_distinct([f.check FOR f IN failures])) AS checks,
           CASE WHEN failing THEN signal ELSE '' END AS signal"""
_FIRST = 'failures[1]."case" AS first_case'
_OUTCOME = ("status", "checks", "signal", "first_case")
_REACHED = f"status <> '{Status.NOT_REACHED}'"


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """The outcome of a cell in one run."""

    status: Status
    checks: tuple[str, ...] = ()  # the checks of its failures, sorted
    signal: str = ""
    case: str = ""  # the first failing case

    @property
    def kind(self) -> str:
        """E.g. ``fail (stride, value)``, ``crash (SIGSEGV)``. Outcomes of the same kind count as equal."""
        return kind_of(self.status, self.checks, self.signal)


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell whose kind differs. The outcome is None in a run that lacks the cell or did not reach it."""

    cell: CellId
    before: CellOutcome | None
    after: CellOutcome | None


def differing(old: Closed, new: Closed) -> list[Pair]:
    """Return the cells whose kind differs between two runs, sorted by name. Raises StoreError."""
    kind, other = "(o.status, o.checks, o.signal)", "(n.status, n.checks, n.signal)"
    sides = ", ".join(f"{side}.{column}" for side in "on" for column in _OUTCOME)
    query = f"""
        WITH o AS (SELECT {CELL}, {_KIND}, {_FIRST} FROM {parquet.table([old.rows])} WHERE {_REACHED}),
             n AS (SELECT {CELL}, {_KIND}, {_FIRST} FROM {parquet.table([new.rows])} WHERE {_REACHED})
        SELECT {CELL}, {sides} FROM o FULL JOIN n USING ({CELL})
        WHERE o.status IS NULL OR n.status IS NULL OR {kind} <> {other} ORDER BY {CELL}"""
    with parquet.database() as db:
        rows = db.execute(query).fetchall()
    return [Pair(CellId(*row[:4]), _outcome(row[4:8]), _outcome(row[8:12])) for row in rows]


def failing(runs: Sequence[Closed], cells: Iterable[CellId]) -> Mapping[CellId, frozenset[str]]:
    """Return the names of the runs in which each cell failed. Runs without failures are not opened."""
    wanted = set(cells)
    files = {str(run.rows): run.name for run in runs if run.failing}
    found: dict[CellId, set[str]] = defaultdict(set)
    if not wanted or not files:
        return {}
    with parquet.database() as db:
        parquet.wanted(db, wanted)
        rows = f"SELECT {CELL}, filename FROM {parquet.table(files)} WHERE failing"
        for *cell, file in db.execute(f"SELECT * FROM ({rows}) SEMI JOIN wanted USING ({CELL})").fetchall():
            found[CellId(*cell)].add(files[file])
    return {cell: frozenset(names) for cell, names in found.items()}


def unlike(runs: Sequence[Closed]) -> list[tuple[CellId, tuple[CellOutcome | None, ...]]]:
    """Return the cells whose kind differs between these runs, with the outcomes in the order of the runs."""
    files = [str(run.rows) for run in runs]
    table = parquet.table(files)
    query = f"""
        WITH a AS (SELECT {CELL}, {_KIND}, {_FIRST}, filename FROM {table} WHERE {_REACHED}),
             d AS (SELECT {CELL} FROM a GROUP BY {CELL}
                   HAVING count(*) < {len(files)} OR count(DISTINCT (status, checks, signal)) > 1)
        SELECT {CELL}, {", ".join(_OUTCOME)}, filename FROM a SEMI JOIN d USING ({CELL}) ORDER BY {CELL}"""
    with parquet.database() as db:
        rows = db.execute(query).fetchall()
    found: dict[CellId, dict[str, CellOutcome | None]] = defaultdict(dict)
    for row in rows:
        found[CellId(*row[:4])][row[8]] = _outcome(row[4:8])
    return [(cell, tuple(outcomes.get(file) for file in files)) for cell, outcomes in found.items()]


def _outcome(row: Sequence[Any]) -> CellOutcome | None:
    status, checks, signal, case = row
    if status is None:
        return None
    return CellOutcome(Status(status), tuple(checks or ()), signal, case or "")
