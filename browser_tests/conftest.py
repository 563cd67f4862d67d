"""A browser, and reports to open in it. Without a browser the tests fail: they are never skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.perf.model import Work
from conformance.records import CaseFailure, Death, Mismatch, Observation, PlacedArgument
from conformance.report import gather, model, site
from conformance.vocabulary import CellId, Check, Status
from tests.bisect import worlds
from tests.perf.times import record, timed
from tests.records import observed
from tests.report.results import HOSTILE, bad, nights, ran
from tests.report.test_site import MADE
from tools import browser as browser_

if TYPE_CHECKING:
    from selenium.webdriver import Chrome


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser_.opened(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(driver: Chrome) -> Chrome:
    """Return the browser with a desktop window, a light color scheme, and an empty console."""
    browser_.look(driver, 1280, 800)
    driver.get_log("browser")
    browser_.requests(driver)
    return driver


def searched(root: Path, case: str, word: str) -> None:
    """Store a finished search of bisect for this case. ``word`` precedes the name of every point."""
    file = root / "bisect" / "state.json"
    worlds.search(worlds.question(), worlds.Probe({worlds.CASE: 6}), file, worlds.Workshop(unusable=frozenset({9})))
    kept = json.loads(file.read_text().replace(json.dumps(worlds.CASE), json.dumps(case)))
    for point in kept["question"]["points"]:
        point["name"] = word + point["name"]
    kept["minimal"] = {case: word}
    kept["question"]["command"] = f"conformance bisect '{case}'"
    file.write_text(json.dumps(kept))


def written(root: Path) -> Path:
    found = gather.gather(root / "results", root / "expected", [root / "bisect"], 30)
    site.write(model.site(found, MADE), root / "site")
    return root / "site"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report of two lanes: a failure with arguments to draw, a crash, a repaired cell, a known failure.

    The report also has a kill-rate, a search of bisect and measured times.
    """
    root = tmp_path_factory.mktemp("report")
    nights(root / "results")
    ran(
        root / "results", 2, bad("where.self"), observed("mm", status=Status.UNSUPPORTED, reason="no kernel for it"),
        lane="demo-torch2.13-malloc-release", torch="2.13.0",
    )  # fmt: skip
    (root / "results" / "kill-rate").mkdir()
    (root / "results" / "kill-rate" / "summary.json").write_text(json.dumps(KILL_RATE))
    (root / "expected").mkdir()
    rule = '[[rule]]\nop = ["where.self"]\nstatus = "fail"\nreason = "not yet"\nlink = "https://example.org/1"\n'
    (root / "expected" / "demo.toml").write_text(rule)
    searched(root, "ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#opinfo.masked_fill.3@self", "torch ")
    timed(root / "results", record("mm", device=9e-3, work=Work(10**6, 8 * 10**6, 4 * 10**6, 10**9)), record("neg"))
    return written(root)


@pytest.fixture(scope="session")
def called(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report of one lane, in which a broken kernel makes two overloads fail that call it."""
    root = tmp_path_factory.mktemp("called")
    kernel, *callers = (
        replace(bad(name), failures=(_calling(name),)) for name in ("_copy_from", "clone", "contiguous")
    )
    ran(root / "results", 0, kernel, *callers, observed("_copy_from"))
    (root / "expected").mkdir()
    (root / "expected" / "demo.toml").write_text("")
    return written(root)


def _calling(overload: str) -> CaseFailure:
    (found,) = bad(overload).failures
    return replace(found, calls=(overload, "_copy_from"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report in which every text of the results tries to run as a script."""
    root = tmp_path_factory.mktemp("hostile")
    cell = CellId(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    arguments = (
        PlacedArgument(HOSTILE, HOSTILE, HOSTILE, (2,), (1,), 0, 2, HOSTILE, HOSTILE, HOSTILE),
        PlacedArgument(HOSTILE, text=HOSTILE),
    )
    found = Mismatch(Check.VALUE, HOSTILE, {"kind": HOSTILE, HOSTILE: HOSTILE, "index": [HOSTILE]})
    death = Death(HOSTILE, phase=HOSTILE, log=HOSTILE)
    failure = CaseFailure(f"{cell}#{HOSTILE}", (found,), arguments, death, (HOSTILE,), HOSTILE)
    failing = Observation(cell, HOSTILE, Status.FAIL, 1, (failure,), HOSTILE, HOSTILE, script=HOSTILE)
    given = {"torch": HOSTILE, "backend": "demo", "compiler": HOSTILE, "tier": HOSTILE, "backend_commit": HOSTILE}
    lane = "demo-<script>window.planted=1<-"
    passing = Observation(cell, HOSTILE, Status.PASS, 1)
    ran(root / "results", 0, passing, lane=lane, **given)
    ran(root / "results", 1, failing, lane=lane, **given)
    ran(root / "results", 2, passing, lane=lane, **given)
    ran(root / "results", 3, failing, lane=lane, **given)
    (root / "expected").mkdir()
    known = (
        f"[[rule]]\nop = ['*']\nstatus = 'fail'\nreason = {json.dumps(HOSTILE)}\nlink = 'javascript:window.planted=1'\n"
    )
    (root / "expected" / "demo.toml").write_text(known)
    (root / "results" / "kill-rate").mkdir()
    planted = {"survivors": [{"fault": HOSTILE, "why": HOSTILE, "found_by_own_tests": HOSTILE}], "torch": HOSTILE}
    (root / "results" / "kill-rate" / "summary.json").write_text(json.dumps(KILL_RATE | planted))
    searched(root, f"{cell}#{HOSTILE}", HOSTILE)
    return written(root)


KILL_RATE = {
    "faults": 4, "killed": 3, "false_alarms": 0, "torch": "2.13.0", "seconds": 100,
    "survivors": [{"fault": "a_fault", "why": "needs another stream", "found_by_own_tests": ""}],
    "lanes": {"demo-torch2.13-malloc-release": {"killed": 3, "false_alarms": 0, "tried": 100, "cpu_s": 61}},
    "peer_totals": {"allclose": {"killed": 1, "false_alarms": 0, "tried": 100, "cpu_s": 10}},
    "detail": {"a_fault": {"demo-torch2.13-malloc-release": {"killed_by": "", "where": "", "tried": 1, "seconds": 1}}},
}  # fmt: skip
