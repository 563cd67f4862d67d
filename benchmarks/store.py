"""The store against two alternatives, over a year of nights: ``store.py [DIR] [--nights N] [--cells N]``.

The benchmark creates N closed runs of one lane (365 runs of 100,000 cells) unless DIR contains them. At first 1 cell in
100 fails, and each night five of these cells change their outcome. The result is the size of a run on disk, and the
time to compare the last night with the night before, including the year's history of the differing cells: with
``conformance diff`` as a user starts it, with JSON lines read by Python, and with an indexed table in SQLite.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from conformance.records import CaseFailure, Mismatch, Observation
from conformance.results import store
from conformance.results.store import manifest, runs
from conformance.vocabulary import DTYPES, CellId, Check, Status

LANE = "demo-torch2.13-malloc-release"
FIRST = datetime(2026, 1, 1, 4, tzinfo=timezone.utc)
ROW = "{:<44} {:>12} {:>12} {:>12}"
LAYOUTS = ("contiguous", "expanded", "step2", "transposed", "offset_gap", "mixed", "zero_size", "aliased")


def cell(number: int) -> CellId:
    overload, rest = divmod(number, len(DTYPES) * len(LAYOUTS))
    dtype, layout = divmod(rest, len(LAYOUTS))
    return CellId("family", f"op_{overload}.Tensor", DTYPES[dtype], LAYOUTS[layout])


def observation(number: int, fails: bool, rng: random.Random) -> Observation:
    """Return an observation of a cell, with a random duration."""
    at, wall_ns = cell(number), rng.randrange(10**5, 10**7)
    facts = {
        "kind": "elements", "wrong": rng.randrange(9), "of": 32, "index": [0, 0, 1], "device": 0.0, "cpu": rng.random(),
        "dtype": at.dtype, "absolute": 1.0, "ulp": rng.random(), "bound": {"exact": True, "signed_zeros": True},
    }  # fmt: skip
    found = tuple(Mismatch(Check.VALUE, f"result[{i}]", facts) for i in range(3))
    failures = (CaseFailure(f"{at}#sample.{number}@self", found),) if fails else ()
    return Observation(
        at, "native", Status.FAIL if fails else Status.PASS, 12, failures, wall_ns=wall_ns, cpu_ns=wall_ns,
        raw_ns=wall_ns // 3, compared=12,
    )  # fmt: skip


def told(night: int, cells: int) -> manifest.Manifest:
    return manifest.Manifest(
        lane=LANE, backend="demo", collected=cells, complete=True, torch="2.13.0", environment="malloc",
        build="release", python="3.11.7", compiler="g++ 12.2", backend_commit=f"{night:040x}", corpus="sha256:1",
        tier="full", seed=20, cells="0", run=manifest.run_name(LANE, FIRST + timedelta(days=night), f"{night:06x}"),
        cpu="a processor",
    )  # fmt: skip


def keep(results: Path, run: manifest.Manifest, seen: list[Observation]) -> runs.Closed:
    with store.Writer(results / LANE, run) as writer:
        for o in seen:
            writer.append(o)
        writer.finish({"by_status": {}, "schemas": {}})
    return runs.opened(results / store.RUNS / run.run)


def make(directory: Path, nights: int, cells: int) -> None:
    """Write the runs. Cells that always pass are written once, and joined with the other 1 % of each night."""
    rng = random.Random(0)
    results = directory / "results"
    own = range(0, cells, 100)
    passing = [observation(n, False, rng) for n in range(cells) if n % 100]
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        base = keep(Path(scratch), told(0, len(passing)), passing)
        failing = dict.fromkeys(own, True)
        for night in range(nights):
            for number in rng.sample(own, 5):  # broken or repaired since the last night
                failing[number] = not failing[number]
            seen = [observation(n, failing[n], rng) for n in own]
            part = keep(Path(scratch) / str(night), told(night, len(seen)), seen)
            runs.join(results, told(night, cells), [base, part], {"by_status": {}, "schemas": {}})


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def best(measure: Callable[[], Any], rounds: int = 5) -> tuple[float, float]:
    """Return the wall and CPU seconds of the best of several rounds, including children."""
    found = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time() + children_cpu()
        measure()
        found.append((time.perf_counter() - wall, time.process_time() + children_cpu() - cpu))
    return min(found)


def diff(directory: Path) -> list[str]:
    command = (sys.executable, "-m", "conformance.cli", "diff", f"{LANE}~1", LANE, "--format", "json")
    path = os.pathsep.join(filter(None, (str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH"))))
    # Compile the modules, as in an installation.
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "compiled")}
    variables = os.environ | variables
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=variables)
    return sorted(found["cell"] for found in json.loads(done.stdout)["cells"])


def start(directory: Path) -> None:
    subprocess.run((sys.executable, "-c", "import duckdb"), cwd=directory, check=True)


def json_lines(file: Path) -> list[str]:
    """Return the differing cells of two nights in JSON lines, without the year's history."""
    sides = []
    for path in (file.with_name("old.jsonl"), file):
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        sides.append({(r["family"], r["overload"], r["dtype"], r["layout"]): (r["status"], r["signal"]) for r in rows})
    return sorted(str(CellId(*key)) for key in sides[0] if sides[0][key] != sides[1][key])


def sqlite(file: Path) -> list[str]:
    """Return the differing cells by a query in the year's table, with their history."""
    with sqlite3.connect(file) as db:
        query = """SELECT n.cell FROM rows o JOIN rows n USING (cell) WHERE o.night = ? AND n.night = ?
                   AND (o.status, o.signal) <> (n.status, n.signal) ORDER BY cell"""
        (last,) = db.execute("SELECT max(night) FROM rows").fetchone()
        found = [row[0] for row in db.execute(query, (last - 1, last))]
        for name in found:
            db.execute("SELECT night, status FROM rows WHERE cell = ?", (name,)).fetchall()
    return found


def peers(directory: Path, names: list[str]) -> tuple[Path, Path]:
    """Write the last two nights as JSON lines, and the last thirty in SQLite. A year would take gigabytes."""
    lines, table = directory / "new.jsonl", directory / "nights.sqlite"
    if lines.exists():
        return lines, table
    with sqlite3.connect(table) as db:
        db.execute(
            "CREATE TABLE rows (night INTEGER, cell TEXT, status TEXT, signal TEXT, wall_ns INTEGER, failures TEXT)"
        )
        for night, name in enumerate(names[-30:]):
            seen = runs.load(runs.opened(directory / "results" / store.RUNS / name))
            rows = ((night, str(o.cell), o.status.value, o.signal, o.wall_ns, repr(o.failures)) for o in seen)
            db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute("CREATE UNIQUE INDEX by_cell ON rows (cell, night)")
    for file, name in ((lines.with_name("old.jsonl"), names[-2]), (lines, names[-1])):
        seen = runs.load(runs.opened(directory / "results" / store.RUNS / name))
        file.write_text("".join(json.dumps(o.to_json()) + "\n" for o in seen), encoding="utf-8")
    return lines, table


def main(directory: Path, nights: int, cells: int) -> None:
    results = directory / "results"
    if len(runs.names(results, LANE)) != nights:
        started = time.perf_counter()
        make(directory, nights, cells)
        print(f"made {nights} runs of {cells} cells in {time.perf_counter() - started:.0f} s")
    names = runs.names(results, LANE)
    lines, table = peers(directory, names)
    assert diff(directory) == json_lines(lines) == sqlite(table), "the three do not find the same cells"
    a_run = sum(f.stat().st_size for f in (results / store.RUNS / names[-1]).iterdir())
    nights_in_table = min(30, nights)
    print(ROW.format(f"{nights} nights x {cells} cells", "wall s", "CPU s", "MB a night"))
    for name, measure, size in (
        ("conformance diff, history of the year", lambda: diff(directory), a_run),
        ("of that: to start, and to load DuckDB", lambda: start(directory), 0),
        ("JSON lines in Python, no history", lambda: json_lines(lines), lines.stat().st_size),
        (f"SQLite, indexed, {nights_in_table} nights", lambda: sqlite(table), table.stat().st_size / nights_in_table),
    ):
        wall, cpu = best(measure)
        print(ROW.format(name, f"{wall:.2f}", f"{cpu:.2f}", f"{size / 1e6:.2f}"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--cells", type=int, default=100_000)
    given = parser.parse_args()
    if given.directory:
        given.directory.mkdir(parents=True, exist_ok=True)
        main(given.directory, given.nights, given.cells)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made), given.nights, given.cells)
