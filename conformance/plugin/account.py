"""The account of a run: kept by the process that sees every report, and closed when the session ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance import options
from conformance.exit_codes import Exit
from conformance.layouts import LAYOUTS
from conformance.plugin.collection import SELECTED, CellItem
from conformance.plugin.request import PACKAGE, SUITE, asked_for, lane_of, rules_of, suite_of
from conformance.plugin.running import CELLS
from conformance.usage import cpu_seconds
from conformance.vocabulary import DTYPES, CaseFailure, CellId, Observation, Status

if TYPE_CHECKING:
    from conformance.ledger import Ledger  # noqa: F401 - named in a stash key, as text

_LEDGER = pytest.StashKey["Ledger"]()
_SPENT = pytest.StashKey[list[tuple[float, float]]]()  # what each worker spent: (seconds collecting, CPU seconds)
_CLOSING = pytest.StashKey[str]()
_WORKER_KEY = "conformance"


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Without xdist: the cells that are left after -k and the like are those to account for."""
    config = session.config
    if asked_for(config) and SELECTED in config.stash and not is_worker(config) and not config.option.collectonly:
        _open_ledger(config, [item.cell for item in session.items if isinstance(item, CellItem)], len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Under xdist every worker collects the same; the first one's list is the account's."""
    if asked_for(node.config) and _LEDGER not in node.config.stash:
        _open_ledger(node.config, [cell for id_ in ids if (cell := CellId.parse(id_))], len(ids))


def _open_ledger(config: pytest.Config, cells: list[CellId], items: int) -> None:
    """Begin the account. Raises pytest.UsageError where its directory cannot be written."""
    from conformance.ledger import Ledger

    suite = suite_of(config)
    if not items:
        words = {o.base for o in suite.inventory.values()} | {*DTYPES, *LAYOUTS}
        left = options.nothing_left(config.invocation_params.args, config.option.keyword, words)
        config.stash[_CLOSING] = f"ERROR: {left}"
    if not cells:
        return
    lane = lane_of(config, suite)
    complete = suite.selection.whole and not config.option.keyword and not config.option.markexpr and _whole(config)
    manifest = suite.manifest(lane, len(cells), complete, tuple(config.invocation_params.args))
    directory = Path(config.option.results) / lane
    try:
        config.stash[_LEDGER] = Ledger(directory, manifest, cells, suite.targets(), rules_of(config, suite))
    except OSError as e:
        raise pytest.UsageError(f"--results: {directory} cannot be written: {e}") from e


def _whole(config: pytest.Config) -> bool:
    """Whether the arguments name the package as a whole, not a file or a cell in it."""
    here = config.invocation_params.dir
    return any(a == PACKAGE.name and config.option.pyargs or (here / a).resolve() == PACKAGE for a in config.args)


class _Reports:
    """The controller's ear: a plugin object, since the report hook is not given the config."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._on_interrupt: Any = None  # what Ctrl-C did before it was ignored

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _LEDGER not in self._config.stash:
            return
        ledger = self._config.stash[_LEDGER]
        payload = getattr(report, "conformance", None)
        if payload:
            ledger.gate = payload["gate"]
            ledger.enter(Observation.from_json(payload["observation"]))
        elif cell := CellId.parse(report.nodeid):  # xdist's own report: the worker that had the cell is gone
            ledger.enter(lost(cell, str(report.longrepr)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """A second Ctrl-C does not cost the account of what ran before the first: closing it takes seconds."""
        if _LEDGER in self._config.stash:
            self._on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def pytest_unconfigure(self) -> None:
        if self._on_interrupt is not None:
            signal.signal(signal.SIGINT, self._on_interrupt)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker's last words."""
        self._config.stash[_SPENT].append(getattr(node, "workeroutput", {}).get(_WORKER_KEY, (0.0, 0.0)))


def lost(cell: CellId, said: str) -> Observation:
    """The observation of a cell whose worker (not its child) died: the suite's own failure."""
    failure = CaseFailure(cell.name, "", f"the process that ran the cells is gone: {said}")
    return Observation(cell, "", Status.ERROR, 0, (failure,))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SPENT] = []
    forget = asked_for(config) and not config.getoption("newfirst", False)
    if forget and config.pluginmanager.has_plugin("nfplugin"):
        # It keeps the ids of all items ever collected for --new-first, and reads and writes them at each run's end:
        # after one full run, some 260,000 of them.
        config.pluginmanager.unregister(name="nfplugin")
    if is_worker(config) and asked_for(config):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the controller ends the workers
    if not is_worker(config):
        config.pluginmanager.register(_Reports(config), "conformance-reports")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """End the child; then, in the process that keeps the ledger, account for every cell and set the exit code."""
    config = session.config
    if CELLS in config.stash:
        config.stash[CELLS].runner.close()
    collect_s = config.stash[SUITE].collect_s if SUITE in config.stash else 0.0
    if is_worker(config):
        config.workeroutput[_WORKER_KEY] = (collect_s, cpu_seconds())  # type: ignore[attr-defined]  # xdist's attribute
    elif _LEDGER in config.stash:
        spent = config.stash[_SPENT]
        collect_s = max([collect_s, *(c for c, _ in spent)])
        closing = config.stash[_LEDGER].close(collect_s, cpu_seconds() + sum(cpu for _, cpu in spent))
        unchecked = config.stash[SUITE].backend.unchecked()
        config.stash[_CLOSING] = "\n".join([*([unchecked] if unchecked else []), closing.text])
        ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ended or closing.code is Exit.BRING_UP:
            session.exitstatus = int(closing.code)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _CLOSING in config.stash:
        terminalreporter.section("conformance")
        terminalreporter.write_line(config.stash[_CLOSING])
