"""Observations as a Parquet file. DuckDB writes it from the journal's lines and reads it.

The failing cells come first, so that a search for failures over many runs reads only the head of each file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.records import Observation
from conformance.results.store.manifest import StoreError
from conformance.support.lines import first_line
from conformance.vocabulary import CellId, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

# The columns, as in Observation.to_json. Values that no query uses stay JSON.
COLUMNS = {
    "family": "VARCHAR", "overload": "VARCHAR", "dtype": "VARCHAR", "layout": "VARCHAR", "route": "VARCHAR",
    "status": "VARCHAR", "cases": "BIGINT", "compared": "BIGINT", "reason": "VARCHAR", "signal": "VARCHAR",
    "wall_ns": "BIGINT", "cpu_ns": "BIGINT", "raw_ns": "BIGINT", "script": "VARCHAR", "partial": "BOOLEAN",
    "lacking": "STRUCT(overload VARCHAR, cases BIGINT)[]",
    "failures": (
        'STRUCT("case" VARCHAR, "check" VARCHAR, mismatches VARCHAR, arguments VARCHAR, death VARCHAR, '
        "calls VARCHAR[], trouble VARCHAR, older VARCHAR, boundary VARCHAR, repetition VARCHAR)[]"
    ),
}  # fmt: skip
# The fields of a failure that stay JSON. Runs of older versions lack the last two.
_JSON = ("mismatches", "arguments", "death", "boundary", "repetition")
CELL = "family, overload, dtype, layout"

_FAILING = ", ".join(f"'{status}'" for status in Status if status.is_failure)
_ROWS_A_GROUP = 20480
_LONGEST_LINE = 1 << 28  # bytes
_LACKING = "duckdb is not installed; it reads and writes closed runs; install it with: pip install duckdb"


@contextmanager
def database() -> Iterator[DuckDBPyConnection]:
    """Open DuckDB in memory. Raises StoreError if it is not installed, and for its errors."""
    try:
        import duckdb
    except ImportError as e:
        raise StoreError(_LACKING) from e
    config: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    connection = duckdb.connect(":memory:", config=config)
    try:
        yield connection
    except duckdb.Error as e:
        raise StoreError(f"results cannot be read: {first_line(str(e))}") from e
    finally:
        connection.close()


def quoted(text: object) -> str:
    """Return a SQL literal."""
    return "'" + str(text).replace("'", "''") + "'"


def write(journal: Path, target: Path) -> None:
    """Write the observations of a journal to a Parquet file. All lines must be complete; the manifest is omitted."""
    columns = ", ".join(f"{name}: {quoted(kind)}" for name, kind in COLUMNS.items())
    lines = (
        f"read_json({quoted(journal)}, format='newline_delimited', maximum_object_size={_LONGEST_LINE}, "
        f"columns={{{columns}}})"
    )
    select = f"SELECT status IN ({_FAILING}) AS failing, * FROM {lines} WHERE overload IS NOT NULL"
    with database() as db:
        _copy(db, select, target)


def read(file: Path, where: str = "true") -> tuple[Observation, ...]:
    """Return the observations of a file, sorted by cell. ``where``: a SQL condition."""
    with database() as db:
        select = f"SELECT * EXCLUDE (failing, filename) FROM {table([file])} WHERE {where} ORDER BY {CELL}"
        found = db.execute(select)
        names = [column[0] for column in found.description]  # files of older versions lack some
        rows = found.fetchall()
    return tuple(_observation(dict(zip(names, row))) for row in rows)


def durations(file: Path) -> dict[str, int]:
    """Return the nanoseconds of each cell that ran, by id."""
    with database() as db:
        query = f"SELECT {CELL}, wall_ns FROM {table([file])} WHERE wall_ns > 0"
        return {str(CellId(*cell)): wall_ns for *cell, wall_ns in db.execute(query).fetchall()}


def join(files: Iterable[Path], target: Path) -> None:
    """Join several files to one."""
    with database() as db:
        _copy(db, f"SELECT * EXCLUDE (filename) FROM {table(files)}", target)


def _copy(db: DuckDBPyConnection, select: str, target: Path) -> None:
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS_A_GROUP}"
    db.execute(f"COPY ({select} ORDER BY failing DESC, {CELL}) TO {quoted(target)} ({options})")


def table(files: Iterable[Path | str]) -> str:
    """Return a SQL table of the rows of several files. The column ``filename`` has the file."""
    return f"read_parquet([{', '.join(map(quoted, files))}], filename=true, union_by_name=true)"


def wanted(db: DuckDBPyConnection, cells: Iterable[CellId]) -> None:
    """Create a table ``wanted`` of these cells."""
    columns: list[tuple[str, ...]] = list(zip(*(cell.fields() for cell in cells))) or [()] * 4
    lists = ", ".join(f"unnest(?::VARCHAR[]) AS {name}" for name in CELL.split(", "))
    db.execute(f"CREATE TABLE wanted AS SELECT {lists}", [list(column) for column in columns])


def _observation(record: dict[str, Any]) -> Observation:
    return Observation.from_json({**record, "failures": [_failure(f) for f in record["failures"] or ()]})


def _failure(record: dict[str, Any]) -> dict[str, Any]:
    """Return a failure for CaseFailure.from_json, which also reads format version 2."""
    if "mismatches" not in record:
        return record
    return {**record, **{name: json.loads(record.get(name) or "null") for name in _JSON}}
