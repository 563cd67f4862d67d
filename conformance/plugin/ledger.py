"""The hooks that keep the ledger of a run, in the process that receives every report."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.layouts import LAYOUTS
from conformance.plugin import markers
from conformance.plugin.collection import COLLECT_S, SELECTED, CellItem
from conformance.plugin.manifest import manifest_of, model_routes, schemas, targets
from conformance.plugin.request import (
    PLAN,
    asked_for,
    directory_of,
    is_worker,
    isolation_of,
    known_failures_of,
    plan_of,
)
from conformance.plugin.resuming import resumed
from conformance.plugin.running import stop_workers
from conformance.plugin.sharding import SPLIT
from conformance.records import Gate, Observation
from conformance.results import resume
from conformance.results.ledger import Ledger
from conformance.results.shards import Split
from conformance.results.store import StoreError
from conformance.support import options
from conformance.support.exit_codes import Exit
from conformance.support.signals import INTERRUPTIONS, ignore_interruptions
from conformance.support.usage import cpu_seconds
from conformance.vocabulary import DTYPES, CellId

if TYPE_CHECKING:
    from conformance.plan.plan import Plan

_LEDGER = pytest.StashKey[Ledger]()
_SPENT = pytest.StashKey[list[tuple[float, float]]]()  # for each worker: (seconds of collection, CPU seconds)
_END = pytest.StashKey[str]()  # what is printed at the end of the run
_NOTES = pytest.StashKey[list[str]]()  # lines that are printed before _END
_WORKER_KEY = "conformance"
_REPORTS = "conformance-reports"
LISTED = 10  # if more cells fail, pytest's short summary does not list them, unless -r is given
_REPORTCHARS = "fE"  # pytest's default of -r
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)  # not interrupted


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Open the ledger of a run without xdist, with the cells that the options select."""
    config = session.config
    if asked_for(config) and SELECTED in config.stash and not is_worker(config) and not config.option.collectonly:
        _open_ledger(config, [item.cell for item in session.items if isinstance(item, CellItem)], len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Open the ledger under xdist. All workers collect the same cells, so the first worker's list is taken."""
    if asked_for(node.config) and _LEDGER not in node.config.stash:
        _open_ledger(node.config, [cell for id_ in ids if (cell := CellId.parse(id_))], len(ids))


def _open_ledger(config: pytest.Config, cells: list[CellId], items: int) -> None:
    """Open a new ledger, or the ledger of the interrupted run. Raises pytest.UsageError if it cannot be opened."""
    plan = plan_of(config)
    before, seen = resumed(config)
    if not items and not seen and not config.option.shard:
        config.stash[_END] = f"ERROR: {_nothing_left(config, plan)}"
    if not cells and not seen:
        return
    directory = directory_of(config, plan)
    manifest = manifest_of(config, plan, [*seen, *map(str, cells)])
    if config.option.resume and before is None:
        config.stash[_NOTES].append(f"--resume: no earlier run in {directory}; this is a new run")
    with _usage_errors(directory):
        if before is not None:
            resume.check(directory, before, manifest)
        elif kept := resume.set_aside(directory):
            config.stash[_NOTES].append(f"the observations of an interrupted run were moved to {kept}")
        ledger = Ledger(directory, manifest, cells, targets(plan), known_failures_of(config, plan), seen, schemas(plan))
        ledger.routes = model_routes(plan)
        config.stash[_LEDGER] = ledger


@contextmanager
def _usage_errors(directory: Path) -> Iterator[None]:
    """Raise pytest.UsageError for results that cannot be read or written."""
    try:
        yield
    except resume.ResumeError as e:
        raise pytest.UsageError(f"--resume: {e}") from e
    except StoreError as e:
        raise pytest.UsageError(f"--results: {e}") from e
    except OSError as e:
        raise pytest.UsageError(f"--results: {directory} cannot be written: {e.strerror or e}") from e


class _Reports:
    """The hooks that enter reports into the ledger. They are methods, because pytest passes them no config."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._handlers: dict[int, Any] = {}  # the previous handlers, by signal
        self._interrupted = False
        if asked_for(config):
            self._handle(signal.SIGTERM, signal.default_int_handler)  # a CI's timeout ends the run as Ctrl-C does

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _LEDGER not in self._config.stash:
            return
        try:
            self._enter(self._config.stash[_LEDGER], report)
        except StoreError as e:
            pytest.exit(str(e), returncode=int(pytest.ExitCode.INTERRUPTED))  # closing the ledger prints the rest

    def _enter(self, ledger: Ledger, report: pytest.TestReport) -> None:
        payload = getattr(report, "conformance", None)
        if payload:
            ledger.gate = Gate.from_json(payload["gate"])
            ledger.enter(Observation.from_json(payload["observation"]), needed=payload["needed"])
        elif report.failed and (cell := CellId.parse(report.nodeid)):
            # A report of xdist that a worker died, or a report of a failed setup: the cell did not run.
            ledger.lose(cell, str(report.longrepr))

    def close_undisturbed(self) -> None:
        """Ignore interruptions from here on: closing the ledger takes seconds, and it must not be interrupted."""
        if _LEDGER in self._config.stash:
            for number in INTERRUPTIONS:
                self._handle(number, signal.SIG_IGN)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._interrupted = isinstance(excinfo.value, KeyboardInterrupt)  # pytest.exit() calls this hook, too
        self.close_undisturbed()  # by a second interruption

    def _handle(self, number: int, handler: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # other threads may not set handlers
            before = signal.signal(number, handler)
            self._handlers.setdefault(number, before)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        if self._interrupted:
            return  # a second interruption may come until the process ends, and must not replace its exit code
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the collection time, the CPU time and the split that a worker reports at its end."""
        collect_s, cpu_s, split = getattr(node, "workeroutput", {}).get(_WORKER_KEY, (0.0, 0.0, None))
        self._config.stash[_SPENT].append((collect_s, cpu_s))
        if split:
            self._config.stash[SPLIT] = Split(**split)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SPENT] = []
    config.stash[_NOTES] = []
    markers.register(config)
    forget = asked_for(config) and not config.getoption("newfirst", False)
    if forget and config.pluginmanager.has_plugin("nfplugin"):
        # This plugin reads and writes the ids of all items that were ever collected, for --new-first. After a full run
        # these are 260,000 ids.
        config.pluginmanager.unregister(name="nfplugin")
    if is_worker(config) and asked_for(config):
        ignore_interruptions()  # signals reach the whole process group; the controller ends the workers
    if not is_worker(config):
        config.pluginmanager.register(_Reports(config), _REPORTS)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """End the processes that run cells. In the process that keeps the ledger, close it and set the exit code."""
    config = session.config
    if reports := config.pluginmanager.get_plugin(_REPORTS):
        reports.close_undisturbed()
    stop_workers(config)
    if SPLIT in config.stash:
        # gc.freeze() after collection covers the durations that split the cells. LeakSanitizer reports their memory if
        # it stays frozen.
        gc.unfreeze()
    if is_worker(config):
        split = config.stash[SPLIT].to_json() if SPLIT in config.stash else None
        spent = (config.stash.get(COLLECT_S, 0.0), cpu_seconds(), split)
        config.workeroutput[_WORKER_KEY] = spent  # type: ignore[attr-defined]  # xdist's attribute
    elif _LEDGER in config.stash:
        _close(session, config.stash[_LEDGER])
    elif SPLIT in config.stash and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        _close_empty(session, config.stash[SPLIT])
    return (yield)


def _close(session: pytest.Session, ledger: Ledger) -> None:
    """Close the ledger; set the exit code and the text for the terminal."""
    config = session.config
    spent = config.stash[_SPENT]
    collect_s = max([config.stash.get(COLLECT_S, 0.0), *(collecting for collecting, _ in spent)])
    cpu_s = cpu_seconds() + sum(cpu for _, cpu in spent)
    end = ledger.close(collect_s, cpu_s, config.stash.get(SPLIT, None))
    plan = config.stash[PLAN]
    notes = (isolation_of(config, plan)[1], plan.backend.unchecked(), plan.contexts_left_out())
    config.stash[_END] = "\n".join([*config.stash[_NOTES], *filter(None, notes), end.text])
    if session.exitstatus in _ENDED or end.code in (Exit.BRING_UP, Exit.RESULTS):
        session.exitstatus = int(end.code)


def _close_empty(session: pytest.Session, split: Split) -> None:
    """End the run of a shard that has no cells. This is no error if other shards have cells."""
    if split.of:
        session.config.stash[_END] = f"shard {split.shard} has none of the {split.of} cells"
        session.exitstatus = int(Exit.OK)
    else:
        session.config.stash[_END] = f"ERROR: {_nothing_left(session.config, plan_of(session.config))}"


def _nothing_left(config: pytest.Config, plan: Plan) -> str:
    words = {o.base for o in plan.inventory.values()} | {*DTYPES, *LAYOUTS}
    return options.nothing_left(config.invocation_params.args, config.option.keyword, words)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _END in config.stash:
        terminalreporter.section("conformance")
        terminalreporter.write_line(config.stash[_END])
        if config.option.reportchars == _REPORTCHARS and len(terminalreporter.stats.get("failed", ())) > LISTED:
            # Causes and counts stay on the last screen. -rf lists the failing cells nevertheless.
            terminalreporter.reportchars = terminalreporter.reportchars.replace("f", "")
