"""The cost of the report with 150,000 cells in two lanes: ``python -m benchmarks.report [CELLS [LANES]]``.

The benchmark creates two nights of each lane, in which 1 % of the cells fail, writes the site, and measures in a
headless Chromium: the time from loading the page to the first view, to the list of all cells, and from a change of a
filter to the next picture. The result is the median in milliseconds. It needs selenium, chromium and chromedriver.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.layouts import LAYOUTS
from conformance.records import CaseFailure, Mismatch, Observation, PlacedArgument
from conformance.report import gather, model, site
from conformance.results import store
from conformance.results.store.manifest import Manifest, run_name
from conformance.vocabulary import DTYPES, CellId, Check, Status
from tools import browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CELLS = 150_000
ROUNDS = 5
LANES = 2
FILTERS = {
    "one word": "q=op_7",
    "a word of messages": "q=elements",
    "words and status": "q=op_1+float32&status=fail,crash",
    "dtype and layout": "dtype=float32&layout=expanded",
    "nothing": "",
}
ARGUMENTS = (PlacedArgument("self", "float32", "expanded", (4, 6), (0, 1), 0, 6),)
FACTS = {
    "kind": "elements", "of": 24, "index": [0, 1], "device": 1.5, "cpu": 2.5, "dtype": "float32", "absolute": 1.0,
    "ulp": 3355443.2, "bound": {"exact": True, "signed_zeros": True}, "pattern": None,
}  # fmt: skip


def cells(count: int) -> Iterator[CellId]:
    """Return ``count`` cells: families of 60 overloads in all dtypes and layouts."""
    each = product(range(count), DTYPES, LAYOUTS)
    return (CellId(f"family_{n // 60}", f"op_{n}", dtype, layout) for n, dtype, layout in islice(each, count))


def observed(cell: CellId, n: int, night: int) -> Observation:
    """Return an observation. 1 in 100 cells fails, different ones each night, and 1 in 7 is unsupported."""
    if (n + night) % 100 == 0:
        found = Mismatch(Check.VALUE, "result", FACTS | {"wrong": n % 24 + 1})
        failure = CaseFailure(f"{cell}#sample.{n % 9}@self", (found,), ARGUMENTS)
        return Observation(cell, "native", Status.FAIL, 4, (failure,), wall_ns=1_000_000, compared=4)
    if n % 7 == 0:
        return Observation(cell, "fallback", Status.UNSUPPORTED, 1, reason=f"no kernel for {cell.dtype} of {n // 4000}")
    return Observation(cell, "native", Status.PASS, 4, wall_ns=1_000_000, compared=4)


def generate(results: Path, count: int, lanes: int) -> None:
    """Write two nights of each lane. Different cells fail in each."""
    names = [f"demo-torch2.{6 + n}-malloc-release" for n in range(lanes)]
    for lane, night in product(names, (1, 2)):
        name = run_name(lane, datetime(2026, 1, night, 4, tzinfo=timezone.utc))
        manifest = Manifest(
            lane=lane, backend="demo", collected=count, complete=True, torch=lane.split("-")[1].removeprefix("torch"),
            environment="malloc", build="release", python="3.11", compiler="", backend_commit=str(night), corpus="",
            tier="full", seed=0, run=name,
        )  # fmt: skip
        with store.Writer(results / lane, manifest) as writer:
            seen: Counter[str] = Counter()
            for n, cell in enumerate(cells(count)):
                observation = observed(cell, n, night)
                seen[observation.status.value] += 1
                writer.append(observation)
            writer.finish({"by_status": dict(seen), "manifest": asdict(manifest)})


def built(root: Path, count: int, lanes: int = LANES) -> tuple[Path, float]:
    """Write a site. Return its path, and the seconds for reading the store and for writing the site."""
    generate(root / "results", count, lanes)
    start = time.perf_counter()
    found = gather.gather(root / "results", None, (), 30)
    site.write(model.site(found, datetime.now(timezone.utc)), root / "site")
    return root / "site", time.perf_counter() - start


def first_views(driver: Chrome, where: Path) -> dict[str, float]:
    """Return the milliseconds from the start of loading to the drawn view, by view."""
    made = {}
    for view in ("overview", "map", "cells", "new"):
        times = []
        for _ in range(ROUNDS):
            browser.visit(driver, where, f"#/{view}")
            times.append(float(driver.execute_script("return report.firstRender")))
        made[view] = statistics.median(times)
    return made


def filters(driver: Chrome, where: Path) -> dict[str, float]:
    """Return the milliseconds from a change of the filter to the next picture, by filter."""
    browser.visit(driver, where, "#/cells")
    made = {}
    for name, query in FILTERS.items():
        times = [filtered(driver, query) for _ in range(ROUNDS)]
        made[name] = statistics.median(times)
    return made


def filtered(driver: Chrome, query: str) -> float:
    """Change the filter of the cells. Return the milliseconds to the next picture."""
    return float(driver.execute_async_script(_TO_PICTURE, query))


_TO_PICTURE = """
const [query, done] = arguments, start = performance.now();
history.replaceState(null, "", "#/cells?" + query);
report.searched();
requestAnimationFrame(() => {
  const channel = new MessageChannel(); // its message comes after the frame is drawn
  channel.port1.onmessage = () => done(performance.now() - start);
  channel.port2.postMessage(0);
});"""


def main(count: int = CELLS, lanes: int = LANES) -> int:
    """Print all figures. Return 2 if there is no browser, else 0."""
    if missing := browser.lacking():
        print(f"Error: {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        where, seconds = built(Path(scratch), count, lanes)
        size = sum(file.stat().st_size for file in where.rglob("*") if file.is_file())
        print(f"{count} cells in {lanes} lanes: {seconds:.1f} s to read and write, {size / 1e6:.1f} MB")
        with browser.opened(Path(scratch) / "profile") as driver:
            browser.look(driver, 1680, 1050)
            for title, figures in (("first view", first_views(driver, where)), ("filter", filters(driver, where))):
                print(title, *(f"  {name:<20} {ms:>7.0f} ms" for name, ms in figures.items()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
