"""The store and the report with a year of nights of many backends: ``python -m benchmarks.a_year [DIR]``.

The plan of docs/scale.md has 20 backends x 12 torch versions x 12 environments: 2,880 lanes, which run each night, so
that a year has 1,051,200 runs of 290,000 cells. These would take terabytes. The benchmark makes only the data that is
read:

- 365 closed runs of one lane at full size, written by the store, and a directory with the name of each run of some
  other lanes. A comparison lists all names, and opens the runs of its own lane alone.
- Two nights of some lanes for a report, whose rows are hard links to those runs. Each run has its own manifest. A
  report reads all rows of each lane, so that its time and size grow with the number of lanes.

600 cells of a lane fail in some nights, and 10 of them change each night. All values are drawn from a seed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.layouts import LAYOUTS
from conformance.records import CaseFailure, Mismatch, Observation
from conformance.report import gather, model, site
from conformance.results import history, store
from conformance.results.store import runs
from conformance.results.store.manifest import Manifest, run_name
from conformance.vocabulary import DTYPES, CellId, Check, Status
from tools import browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BACKENDS, TORCHES, ENVIRONMENTS, NIGHTS = 20, 12, 12, 365
CELLS = 290_000  # of a full lane of the reference backend
WAVERING = 600  # cells that fail in some nights
BROKEN = 10  # number of these cells that change their outcome each night
FIRST = datetime(2026, 1, 1, 4, tzinfo=timezone.utc)
ROW = "{:<66} {:>10} {:>10} {:>12}"
COVERED = 1072  # overloads that a full run has to compare


def lanes(backends: int = BACKENDS) -> list[str]:
    """Return the names of the lanes of a night, those of one backend after the other."""
    each = product(range(backends), range(4, 4 + TORCHES), range(ENVIRONMENTS))
    return [f"npu{b:02}-torch2.{t}-mode{e:02}-release" for b, t, e in each]


def cells(count: int) -> Iterator[CellId]:
    """Return ``count`` cells: families of 20 overloads, each in all dtypes and layouts."""
    each = product(range(count), DTYPES, LAYOUTS)
    return (CellId(f"family_{n // 20}", f"op_{n}.Tensor", *rest) for n, *rest in islice(each, count))


def observed(cell: CellId, n: int, fails: bool, rng: random.Random) -> Observation:
    """Return an observation with a random duration. 1 cell in 8 is unsupported, for one of some hundred reasons."""
    ns = rng.randrange(10**6, 10**7)
    times: dict[str, Any] = {"wall_ns": ns, "cpu_ns": ns - ns // 9, "raw_ns": ns // 10}
    if fails:
        facts = {
            "kind": "elements", "wrong": n % 24 + 1, "of": 24, "index": [0, 1], "device": 1.5, "cpu": rng.random(),
            "dtype": cell.dtype, "absolute": 1.0, "ulp": rng.random(), "bound": {"exact": True, "signed_zeros": True},
        }  # fmt: skip
        failure = CaseFailure(f"{cell}#sample.{n % 9}@self", (Mismatch(Check.VALUE, "result", facts),))
        return Observation(cell, "native", Status.FAIL, 9, (failure,), compared=9, **times)
    if n % 8 == 0:
        reason = (
            f"CPU has no kernel of {cell.overload} for {cell.dtype}" if n % 3 else f"no {cell.layout} of op_{n % 90}"
        )
        return Observation(cell, "fallback", Status.UNSUPPORTED, 1, reason=reason, **times)
    return Observation(cell, "native", Status.PASS, 9, compared=9, **times)


def outcomes(count: int, nights: int, seed: int = 0) -> Iterator[dict[int, bool]]:
    """Yield for each night which of the wavering cells fail: at first half of them; each night some change."""
    rng = random.Random(seed)
    failing = {n: rng.random() < 0.5 for n in rng.sample(range(count), min(WAVERING, count))}
    for _ in range(nights):
        for n in rng.sample(sorted(failing), BROKEN):
            failing[n] = not failing[n]
        yield dict(failing)


def told(lane: str, night: int, count: int) -> Manifest:
    """Return the manifest of a lane's run."""
    backend, torch, environment, build = lane.split("-")
    return Manifest(
        lane=lane, backend=backend, collected=count, complete=True, torch=torch.removeprefix("torch"),
        environment=environment, build=build, python="3.11.7", compiler="g++ 12.2", backend_commit=f"{night:040x}",
        corpus="sha256:1", tier="full", seed=20, run=run_name(lane, FIRST + timedelta(days=night), f"{night:06x}"),
        cpu="a processor", cells=f"sha256:{count}",
    )  # fmt: skip


def summary(counts: Counter[str], count: int) -> dict[str, Any]:
    """Return a summary as large as that of a lane in which 177 overloads are not reached."""
    missing = [{"overload": f"op_{n}.out", "reason": "no sample can be made for it on CPU"} for n in range(177)]
    coverage = {"compared": COVERED - 177, "total": COVERED, "by_route": {}, "not_reached": missing}
    return {
        "by_status": dict(counts), "coverage": coverage, "cells": count, "cases": 9 * count, "wall_s": 700.0,
        "cpu_s": 1200.0, "collect_s": 9.0, "raw_call_share": 0.1, "schemas": {}, "routes": {},
    }  # fmt: skip


def keep(results: Path, manifest: Manifest, seen: Sequence[Observation]) -> runs.Closed:
    """Write a run as a session does: cell by cell to the journal, which becomes a closed run."""
    counts = Counter(o.status.value for o in seen)
    with store.Writer(results / manifest.lane, manifest) as writer:
        for one in seen:
            writer.append(one)
        writer.finish(summary(counts, len(seen)))
    return runs.opened(results / runs.RUNS / manifest.run)


def make_year(directory: Path, nights: int, count: int) -> list[runs.Closed]:
    """Write a year of the first lane. Cells that never waver are written once, and joined with the others."""
    results, lane, rng = directory / "results", lanes()[0], random.Random(1)
    scratch = directory / "scratch"
    every = list(cells(count))
    wavering = next(outcomes(count, 1))
    steady = [observed(cell, n, False, rng) for n, cell in enumerate(every) if n not in wavering]
    base = keep(scratch, told(lane, nights, len(steady)), steady)
    made = []
    for night, failing in enumerate(outcomes(count, nights)):
        seen = [observed(every[n], n, bad, rng) for n, bad in failing.items()]
        part = keep(scratch, told(lane, night, len(seen)), seen)
        counts = Counter(base.by_status) + Counter(part.by_status)
        runs.join(results, told(lane, night, count), [base, part], summary(counts, count))
        made.append(runs.opened(results / runs.RUNS / told(lane, night, count).run))
    return made


def list_others(results: Path, names: Sequence[str], nights: int) -> int:
    """Make a directory with the name of each run of other lanes: a comparison lists them. Return their number."""
    for lane, night in product(names, range(nights)):
        (results / runs.RUNS / told(lane, night, 0).run).mkdir(exist_ok=True)
    return len(names) * nights


def link_night(results: Path, names: Sequence[str], year: Sequence[runs.Closed]) -> None:
    """Make the last two nights of some lanes. The rows of each are those of a night of the first lane."""
    for number, lane in enumerate(names):
        for back in (1, 0):
            rows = year[-1 - back - 2 * number % (len(year) - 1)]
            manifest = told(lane, NIGHTS - back, rows.manifest.collected)
            directory = results / runs.RUNS / manifest.run
            directory.mkdir(parents=True)
            record = json.loads((rows.directory / runs.MANIFEST).read_text()) | dataclasses.asdict(manifest)
            (directory / runs.MANIFEST).write_text(json.dumps(record, indent=1) + "\n")
            for name in (runs.PARQUET, runs.SUMMARY):
                os.link(rows.directory / name, directory / name)


def command(*arguments: str, cwd: Path) -> tuple[float, float, float]:
    """Run a command of the suite. Return its wall and CPU seconds, and its largest memory in MB."""
    variables = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    variables |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cwd / "compiled")}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "conformance.cli", *arguments], cwd=cwd, env=variables, stdout=subprocess.DEVNULL
    )
    _, _, used = os.wait4(process.pid, 0)
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measured(what: str, measure: Callable[[], tuple[float, float, float]], rounds: int = 3) -> None:
    """Print the median of several rounds."""
    wall, cpu, memory = (statistics.median(column) for column in zip(*(measure() for _ in range(rounds)), strict=True))
    print(ROW.format(what, f"{wall:.2f}", f"{cpu:.2f}", f"{memory:.0f}"), flush=True)


def store_figures(directory: Path, year: Sequence[runs.Closed], others: int) -> None:
    """Print the size and the time of storing a run, and the times of comparisons."""
    files = list(year[-1].directory.iterdir())
    size = sum(file.stat().st_size for file in files)
    count = year[-1].manifest.collected
    print(f"a run of {count} cells: {size / 1e6:.2f} MB, {size / count:.1f} bytes a cell")
    lane = lanes()[0]
    diff = ("diff", f"{lane}~1", lane, "--format", "json")
    print(ROW.format("", "wall s", "CPU s", "MB of memory"))
    measured("to start: conformance diff --help", lambda: command("diff", "--help", cwd=directory))
    alone = directory / "alone"
    if not alone.exists():
        (alone / "results" / runs.RUNS).mkdir(parents=True)
        for run in year:
            (alone / "results" / runs.RUNS / run.name).symlink_to(run.directory.resolve())
    measured(f"conformance diff in {len(year)} nights", lambda: command(*diff, cwd=alone))
    made = list_others(directory / "results", lanes()[1 : 1 + others], NIGHTS)
    measured(f"the same, with the names of {made} other runs", lambda: command(*diff, cwd=directory))


def report_figures(directory: Path, year: Sequence[runs.Closed], count: int) -> None:
    """Print the time of a report of some lanes, its size, and the time until its first page is drawn."""
    night = directory / f"night-{count}"
    if not night.exists():
        link_night(night / "results", lanes()[:count], year)
    measured(f"conformance report of {count} lanes", lambda: command("report", "site", cwd=night), rounds=1)
    sizes = {file.name: file.stat().st_size for file in (night / "site" / "data").iterdir()}
    print(f"  {sum(sizes.values()) / 1e6:.1f} MB, of which the first page loads {sizes['site.js'] / 1e6:.2f} MB")


def first_page_figures(directory: Path, year: Sequence[runs.Closed], count: int) -> None:
    """Print the time until the first page of a report is drawn. The parts that it does not load are not written."""
    night = directory / f"night-{count}"
    if not night.exists():
        link_night(night / "results", lanes()[:count], year)
    started = time.process_time()
    made = model.site(gather.gather(night / "results", None, (), 30), FIRST)
    print(f"the first page of a report of {count} lanes: {time.process_time() - started:.0f} CPU s to make")
    where = site.write(dataclasses.replace(made, lanes=()), directory / f"first-{count}").parent
    print(f"  it loads {(where / 'data' / 'site.js').stat().st_size / 1e6:.2f} MB")
    if missing := browser.lacking():
        print(f"  its time is not measured: {missing}")
        return
    with tempfile.TemporaryDirectory() as profile, browser.opened(Path(profile)) as driver:
        browser.look(driver, 1680, 1050)
        times = [_first_page(driver, where) for _ in range(5)]
    print(f"  it is drawn after {statistics.median(times):.0f} ms")


def _first_page(driver: Chrome, where: Path) -> float:
    """Return the milliseconds from the start of loading to the drawn page."""
    browser.visit(driver, where, "#/overview")
    return float(driver.execute_script("return report.firstRender"))


def main(directory: Path, nights: int, count: int, others: int, reported: int, listed: int) -> None:
    """Make the missing data, and print all figures."""
    results = directory / "results"
    if len(runs.names(results, lanes()[0])) != nights:
        started, cpu = time.perf_counter(), time.process_time()
        make_year(directory, nights, count)
        print(f"made {nights} runs: {time.perf_counter() - started:.0f} s, {time.process_time() - cpu:.0f} CPU s")
    year = history.of_series(results, lanes()[0])
    store_figures(directory, year, others)
    if reported:
        report_figures(directory, year, reported)
    if listed:
        first_page_figures(directory, year, listed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--others", type=int, default=287, help="lanes whose runs are names alone; 2879 are all")
    parser.add_argument("--reported", type=int, default=12, help="lanes of the report that is written; 0: none")
    parser.add_argument("--listed", type=int, default=144, help="lanes of the first page that is timed; 0: none")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = (given.directory or Path(scratch)).resolve()
        where.mkdir(parents=True, exist_ok=True)
        main(where, given.nights, given.cells, given.others, given.reported, given.listed)
