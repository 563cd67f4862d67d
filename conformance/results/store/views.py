"""Queries of the report on closed runs: rows of all cells, complete failing cells, statuses by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conformance.records import Observation
from conformance.results.store import parquet
from conformance.results.store.manifest import StoreError
from conformance.results.store.parquet import CELL
from conformance.results.store.runs import Closed
from conformance.vocabulary import CellId, Status


class Row(NamedTuple):
    """One cell of a run, without its failures."""

    family: str
    overload: str
    dtype: str
    layout: str
    route: str
    status: str
    reason: str
    wall_ns: int


def rows(run: Closed) -> list[Row]:
    """Return every cell of a run, unsorted. Raises StoreError."""
    with parquet.database() as db:
        found = db.execute(f"SELECT {', '.join(Row._fields)} FROM {parquet.table([run.rows])}").fetchall()
    return list(map(Row._make, found))


def check(run: Closed) -> None:
    """Raise StoreError if a run has a status that this suite does not know."""
    with parquet.database() as db:
        found = db.execute(f"SELECT DISTINCT status FROM {parquet.table([run.rows])}").fetchall()
    strange = {status for (status,) in found} - {s.value for s in Status}
    if strange:
        raise StoreError(f"{run.rows}: has a status {min(strange)!r}, which this suite does not know")


def cells(run: Closed) -> list[tuple[str, str, str, str]]:
    """Return family, overload, dtype and layout of every cell of a run, unsorted. Raises StoreError."""
    with parquet.database() as db:
        return db.execute(f"SELECT {CELL} FROM {parquet.table([run.rows])}").fetchall()


def failures(run: Closed) -> tuple[Observation, ...]:
    """Return the observations of a run's failing cells, sorted by name. Raises StoreError."""
    return parquet.read(run.rows, "failing") if run.failing else ()


def of_cells(run: Closed, cells: Iterable[CellId]) -> tuple[Observation, ...]:
    """Return the observations of these cells. Raises StoreError."""
    wanted = [f"({CELL}) = ({', '.join(parquet.quoted(field) for field in cell.fields())})" for cell in cells]
    return parquet.read(run.rows, " OR ".join(wanted)) if wanted else ()


def ever_failing(runs: Iterable[Closed]) -> set[CellId]:
    """Return the cells that failed in any of these runs. Raises StoreError."""
    files = [run.rows for run in runs if run.failing]
    if not files:
        return set()
    with parquet.database() as db:
        found = db.execute(f"SELECT DISTINCT {CELL} FROM {parquet.table(files)} WHERE failing").fetchall()
    return {CellId(*cell) for cell in found}


def statuses(runs: Sequence[Closed], cells: Iterable[CellId]) -> Mapping[CellId, Mapping[str, str]]:
    """Return the status of each cell in each run, by the run's name. Raises StoreError."""
    wanted = set(cells)
    files = {str(run.rows): run.name for run in runs}
    if not wanted or not files:
        return {}
    with parquet.database() as db:
        parquet.wanted(db, wanted)
        table = f"SELECT {CELL}, status, filename FROM {parquet.table(files)}"
        rows = db.execute(f"SELECT * FROM ({table}) SEMI JOIN wanted USING ({CELL})").fetchall()
    found: dict[CellId, dict[str, str]] = defaultdict(dict)
    for *cell, status, file in rows:
        found[CellId(*cell)][files[file]] = status
    return found
