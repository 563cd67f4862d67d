"""The run of a cell in a child process, and its pytest report, which contains the observation."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.plugin.collection import CellItem
from conformance.plugin.request import isolation_of, known_failures_of, lane_of, plan_of
from conformance.records import Observation
from conformance.results import run_end
from conformance.vocabulary import CellId, Status

if TYPE_CHECKING:
    from conformance.plan.plan import Plan
    from conformance.results.expectations import KnownFailure
    from conformance.running.runner import Runner

DOT_EVERY = 100  # passing cells for each dot

# Options of plugins that need reports of setup and teardown, made by pytest itself: pytest-html and allure-pytest.
THREE_PHASES = ("htmlpath", "allure_report_dir")

CELLS = pytest.StashKey["Cells"]()
_REPORT = pytest.StashKey[pytest.TestReport]()  # of a cell's item, until pytest makes its own
_PASSED = pytest.StashKey[int]()  # passing cells so far


class Cells:
    """Runs cells in a child of this process and makes pytest reports of the observations."""

    def __init__(self, plan: Plan, known: tuple[KnownFailure, ...], lane: str, runner: Runner) -> None:
        self._plan = plan
        self._known = known
        self._lane = lane
        self.runner = runner
        self._gate = runner.gate()
        self._not_reached = run_end.not_reached(self._gate) if self._gate else ""

    def report(self, item: CellItem, last: bool) -> pytest.TestReport:
        """Run a cell and return its report. The report passes the observation to the process that keeps the ledger."""
        start = time.time()
        observation = self._observe(item.cell, last)
        stop = time.time()
        if self._gate:
            item.session.shouldfail = self._not_reached
        outcome, text, extra = self._verdict(item, observation)
        return pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome=outcome, longrepr=text, when="call",
            start=start, stop=stop, duration=stop - start,
            conformance={"observation": observation.to_json(), "gate": asdict(self._gate) if self._gate else None},
            **extra,
        )  # fmt: skip

    def _observe(self, cell: CellId, last: bool) -> Observation:
        if self._gate:
            return Observation(cell, self._plan.route(cell), Status.NOT_REACHED, 0, reason=self._not_reached)
        from conformance.explain import repro

        return repro.with_script(self._plan, self.runner.observe(cell, last))

    def _verdict(self, item: CellItem, observation: Observation) -> tuple[Any, Any, dict[str, Any]]:
        """Return pytest's outcome, its text, and further attributes of the report."""
        from conformance.explain import describe
        from conformance.results.expectations import Verdict, judge

        judged = judge(observation, self._known, self._lane)
        if judged.verdict is Verdict.EXPECTED_FAILURE:
            reason = judged.rule.reason if judged.rule else ""
            return "skipped", (str(item.path), 0, reason), {"wasxfail": reason}
        if judged.verdict is Verdict.UNEXPECTED_PASS:
            return "failed", f"passed, but a known failure covers it: {judged.rule}", {}
        if judged.verdict is Verdict.UNEXPECTED_FAILURE:
            return "failed", describe.observation(observation, self._plan.backend.name), {}
        if observation.status is Status.PASS:
            return "passed", None, {}
        return "skipped", (str(item.path), 0, f"{observation.status}: {observation.reason}"), {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a cell in one phase with one report, unless a plugin needs the reports of all three phases."""
    if not isinstance(item, CellItem):
        return None
    if any(item.config.getoption(name, None) for name in THREE_PHASES):
        item.run = partial(_call, item, nextitem is None)
        return None  # pytest goes on
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.ihook.pytest_runtest_logreport(report=_cells(item.config).report(item, last=nextitem is None))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _call(item: CellItem, last: bool) -> None:
    """Run a cell within pytest's call phase, and raise pytest's exception for its outcome."""
    report = item.stash[_REPORT] = _cells(item.config).report(item, last)
    if report.failed:
        pytest.fail(str(report.longrepr), pytrace=False)
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        (pytest.xfail if hasattr(report, "wasxfail") else pytest.skip)(reason)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Copy the outcome and the observation to the report that pytest made of a cell's call phase."""
    made = yield
    own = item.stash.get(_REPORT, None) if call.when == "call" else None
    if own is not None:
        kept = ("outcome", "longrepr", "conformance", "wasxfail")
        vars(made).update({name: value for name, value in vars(own).items() if name in kept})
    return made


def _cells(config: pytest.Config) -> Cells:
    if CELLS not in config.stash:
        plan = plan_of(config)
        config.stash[CELLS] = Cells(plan, known_failures_of(config, plan), lane_of(config, plan), _runner(config, plan))
    return config.stash[CELLS]


def _runner(config: pytest.Config, plan: Plan) -> Runner:
    from conformance.running import isolation
    from conformance.running.cell_runner import CellRunner
    from conformance.running.runner import Runner

    mode, _ = isolation_of(config, plan)
    work = CellRunner(plan)
    children = isolation.children(mode, work, plan.recipe())
    return Runner(work, config.option.cell_timeout, children, config.option.death_budget)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """Print one dot for 100 passing cells, since a full run has 250,000 cells."""
    if not hasattr(report, "conformance") or not report.passed:
        return None
    counted = config.stash.get(_PASSED, 0) + 1
    config.stash[_PASSED] = counted
    return "passed", "." if counted % DOT_EVERY == 0 else "", "PASSED"
