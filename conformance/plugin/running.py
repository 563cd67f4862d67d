"""The run of cells in child processes, and their pytest reports, which contain the observations."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.plugin.collection import CellItem
from conformance.plugin.request import (
    asked_for,
    is_worker,
    isolation_of,
    jobs_of,
    known_failures_of,
    lane_of,
    plan_of,
    setting_of,
)
from conformance.records import Gate, Observation
from conformance.results import run_end
from conformance.vocabulary import CellId, Status

if TYPE_CHECKING:
    from conformance.plan.plan import Plan
    from conformance.results.expectations import KnownFailure
    from conformance.running.pool import Pool
    from conformance.running.runner import Runner

DOT_EVERY = 100  # passing cells for each dot

# Options of pytest-html and allure-pytest, which need pytest's own reports of setup and teardown.
THREE_PHASES = ("htmlpath", "allure_report_dir")

CELLS = pytest.StashKey["Cells"]()
POOL = pytest.StashKey["Pool"]()
_REPORT = pytest.StashKey[pytest.TestReport]()  # of a cell's item, to be copied to pytest's own report
_PASSED = pytest.StashKey[int]()  # passing cells so far


class Reports:
    """The pytest reports of observations."""

    def __init__(self, plan: Plan, known: tuple[KnownFailure, ...], lane: str) -> None:
        self._plan = plan
        self._known = known
        self._lane = lane

    def of(self, item: CellItem, observation: Observation, gate: Gate, needed: str = "") -> pytest.TestReport:
        """Return the report of a cell. It passes the observation to the process that keeps the ledger.

        ``needed``: the broken primitive that the cell needs, "" if the cell ran or the device cannot run any cell.
        """
        if gate.failure:
            item.session.shouldfail = run_end.not_reached(gate.failure)
        outcome, text, extra = self._verdict(item, observation)
        told = {"observation": observation.to_json(), "gate": gate.to_json(), "needed": needed}
        return _report(item, outcome, text, observation.wall_ns / 1e9, conformance=told, **extra)

    def unrun(self, item: CellItem, gate: Gate) -> pytest.TestReport | None:
        """Return the report of a cell that cannot run because a primitive is broken, None if it can run."""
        from conformance.running.cell_runner import CellRunner

        needed = CellRunner(self._plan).needs(item.cell, [*gate.limits]) if gate.limits else ""
        broken = gate.failure or (gate.limits[needed] if needed else None)
        if broken is None:
            return None
        reason = run_end.not_reached(broken)
        observation = Observation(item.cell, self._plan.route(item.cell), Status.NOT_REACHED, 0, reason=reason)
        return self.of(item, observation, gate, needed)

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
            return "failed", describe.observation(observation, self._plan.backend.asked), {}
        if observation.status is Status.PASS:
            return "passed", None, {}
        return "skipped", (str(item.path), 0, f"{observation.status}: {observation.reason}"), {}


def _report(item: CellItem, outcome: Any, text: Any, seconds: float, **extra: Any) -> pytest.TestReport:
    stop = time.time()
    return pytest.TestReport(
        nodeid=item.nodeid, location=item.location, keywords={}, outcome=outcome, longrepr=text, when="call",
        start=stop - seconds, stop=stop, duration=seconds, **extra,
    )  # fmt: skip


class Cells:
    """The cells that run in a child of this process, one at a time, in pytest's own order."""

    def __init__(self, plan: Plan, reports: Reports, runner: Runner) -> None:
        self.runner = runner
        self._plan = plan
        self._reports = reports
        self._gate = runner.gate()

    def report(self, item: CellItem, last: bool) -> pytest.TestReport:
        """Run a cell and return its report. ``last``: whether it is the last cell of this process."""
        if unrun := self._reports.unrun(item, self._gate):
            return unrun
        observation = self.runner.observe(item.cell)
        if last:
            observation = self.runner.searched(observation)
        return self._reports.of(item, _with_script(self._plan, observation, [*self._gate.limits]), self._gate)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all cells in this session's workers, if it has any; see :func:`pytest_sessionstart`."""
    config = session.config
    cells = {item.cell: item for item in session.items if isinstance(item, CellItem)}
    if POOL not in config.stash or not cells:
        return None
    if session.testsfailed and not config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    for item, report in _run(config, cells):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        _stop_if_told(session)
    others: list[pytest.Item] = [item for item in session.items if not isinstance(item, CellItem)]
    for other, following in zip(others, [*others[1:], None], strict=False):
        config.hook.pytest_runtest_protocol(item=other, nextitem=following)
        _stop_if_told(session)
    return True


def _run(config: pytest.Config, cells: dict[CellId, CellItem]) -> Iterator[tuple[CellItem, pytest.TestReport]]:
    """Run the cells in the workers. Yields each item with its report, in the order in which cells end."""
    pool: Pool = config.stash[POOL]
    reports = _reports_of(config)
    gate = pool.gate()
    to_run = []
    for cell, item in cells.items():
        if unrun := reports.unrun(item, gate):
            yield item, unrun
        else:
            to_run.append(cell)
    for found in pool.run(to_run):
        item = cells[found.cell]
        if isinstance(found, Observation):
            yield item, reports.of(item, found, gate)
        else:
            yield item, _report(item, "failed", f"worker died: {found.how}", 0.0)


def _stop_if_told(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a cell in one phase with one report, unless a plugin needs the reports of all three phases."""
    if not isinstance(item, CellItem):
        return None
    if _needs_phases(item.config):
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


def _needs_phases(config: pytest.Config) -> bool:
    return any(config.getoption(name, None) for name in THREE_PHASES)


def _cells(config: pytest.Config) -> Cells:
    if CELLS not in config.stash:
        plan = plan_of(config)
        config.stash[CELLS] = Cells(plan, _reports_of(config), _runner_of(config)())
    return config.stash[CELLS]


def _reports_of(config: pytest.Config) -> Reports:
    plan = plan_of(config)
    return Reports(plan, known_failures_of(config, plan), lane_of(config, plan))


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the workers that run cells, unless pytest-xdist or pytest itself runs them.

    The workers are forked before cells are collected: this process then holds little besides the plan, so that forks
    are cheap.
    """
    config = session.config
    elsewhere = is_worker(config) or config.pluginmanager.has_plugin("dsession") or _needs_phases(config)
    if elsewhere or config.option.collectonly or not asked_for(config):
        return
    from conformance.running.pool import Pool

    plan = plan_of(config)
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        reporter.showfspath = False  # cells of several families end in turn, and each change of file would be a line
    config.stash[POOL] = Pool(_runner_of(config), jobs_of(config), partial(_with_script, plan))


def stop_workers(config: pytest.Config) -> None:
    """End the processes that run cells, without waiting for cells that still run."""
    if CELLS in config.stash:
        config.stash[CELLS].runner.close()
    if POOL in config.stash:
        config.stash[POOL].close()


def _with_script(plan: Plan, observation: Observation, without: Sequence[str]) -> Observation:
    if not observation.status.is_failure:
        return observation
    from conformance.explain import repro

    return repro.with_script(plan, observation, without)


def _runner_of(config: pytest.Config) -> Callable[[], Runner]:
    """Load the data that all children need, and return a function that makes a runner in its calling process."""
    from conformance.running import isolation
    from conformance.running.cell_runner import CellRunner
    from conformance.running.runner import Runner

    plan = plan_of(config)
    mode, _ = isolation_of(config, plan)
    work = CellRunner(plan)
    work.prepare()

    def make() -> Runner:
        children = isolation.children(mode, work, plan.recipe())
        option = config.option
        return Runner(
            work, option.cell_timeout, children, option.death_budget, option.failure_budget, setting_of(config)
        )

    return make


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """Print one dot for 100 passing cells, since a full run has 250,000 cells."""
    if not hasattr(report, "conformance") or not report.passed:
        return None
    counted = config.stash.get(_PASSED, 0) + 1
    config.stash[_PASSED] = counted
    return "passed", "." if counted % DOT_EVERY == 0 else "", "PASSED"
