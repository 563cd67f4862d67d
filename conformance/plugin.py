"""The pytest edge: options, cells as items, and the run's account at the end.

Without xdist one process does everything. Under xdist workers run cells, and the controller alone keeps the ledger.
torch and the backend are loaded only when the suite is asked for, so that the plugin costs other test runs nothing.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance import options
from conformance.exit_codes import Exit
from conformance.layouts import LAYOUTS
from conformance.usage import cpu_seconds
from conformance.vocabulary import DTYPES, CaseFailure, CellId, Observation, Route, Status

if TYPE_CHECKING:
    from conformance.expectations import Rule
    from conformance.ledger import Ledger  # noqa: F401 - named in a stash key, as text
    from conformance.suite import Selection, Suite

PACKAGE = Path(__file__).resolve().parent
SCENARIOS = PACKAGE / "scenarios"
TIERS = ("full", "smoke")
SCENARIO_TIMEOUT = 300.0  # seconds
DOT_EVERY = 100  # passing cells a dot

_SUITE = pytest.StashKey["Suite"]()
_CELLS = pytest.StashKey["_Cells"]()
_RULES = pytest.StashKey["tuple[Rule, ...]"]()
_LEDGER = pytest.StashKey["Ledger"]()
_SELECTED = pytest.StashKey[bool]()  # -k and its like have done their work, without an error
_SPENT = pytest.StashKey[list[tuple[float, float]]]()  # what each worker spent: (seconds collecting, CPU seconds)
_CLOSING = pytest.StashKey[str]()
_PASSED = pytest.StashKey[int]()
_WORKER_KEY = "conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "op conformance of a device backend")
    group.addoption(
        "--backend", metavar="NAME", help="an installed backend, or module:device; default: the only one installed"
    )
    group.addoption("--tier", default="full", metavar="|".join(TIERS), help="how much of the matrix (default: full)")
    group.addoption("--dtypes", metavar="A,B", help="only cells of these dtypes")
    group.addoption("--layouts", metavar="A,B", help="only cells of these layouts")
    group.addoption("--route", metavar="A,B", help="only overloads that the backend serves by these routes")
    group.addoption("--case", metavar="ID", default="", help="only this case, as a failure message gives it")
    group.addoption("--seed", type=int, default=20, metavar="N", help="seed of the random overloads (default: 20)")
    group.addoption(
        "--cell-timeout", type=float, default=60.0, metavar="S", help="seconds a cell may take (default: 60)"
    )
    group.addoption(
        "--lane-name", metavar="NAME", help="the lane's name (default: made of backend, torch, environment, build)"
    )
    group.addoption("--results", default="results", metavar="DIR", help="where results/<lane>/ goes (default: results)")
    group.addoption("--expected", metavar="FILE", help="known failures (default: matrices/expected/<backend>.toml)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A mistake in the options is said before anything is collected, by the one process that the user started."""
    if _asked_for(config) and not config.option.help and not config.option.version:
        _rules(config, _suite(config))


def _asked_for(config: pytest.Config) -> bool:
    """Whether the arguments name the matrix: the package, something in it, or (with --pyargs) its name."""
    return bool(config.option.case) or any(
        where.is_relative_to(PACKAGE) and not where.is_relative_to(SCENARIOS) for where in _named(config)
    )


def _scenarios_asked_for(config: pytest.Config) -> bool:
    """Whether the arguments name the scenarios; the package's name alone stands for the matrix."""
    return any(where.is_relative_to(SCENARIOS) for where in _named(config))


def _named(config: pytest.Config) -> Iterator[Path]:
    """The files and directories that the arguments name."""
    for arg in config.args:
        path = arg.partition("::")[0]
        if config.option.pyargs and path.partition(".")[0] == PACKAGE.name:
            yield PACKAGE.joinpath(*path.split(".")[1:])
        yield (config.invocation_params.dir / path).resolve()


def _suite(config: pytest.Config) -> Suite:
    """The suite of this process, made on first use. Raises pytest.UsageError for a mistake of the user's."""
    if _SUITE not in config.stash:
        from conformance import backends, suite
        from conformance.corpus.reader import CorpusError

        try:
            selection = _selection(config)
            backend = backends.find(config.option.backend or backends.default())
            config.stash[_SUITE] = suite.Suite(backend, selection, config.option.seed)
        except (options.OptionError, backends.BackendNotFound, CorpusError) as e:
            raise pytest.UsageError(str(e)) from e
        if selection.case and not config.stash[_SUITE].knows(selection.case):
            raise pytest.UsageError(f"--case: {config.stash[_SUITE].unknown_case(selection.case)}")
    return config.stash[_SUITE]


def _selection(config: pytest.Config) -> Selection:
    """What the options choose. Raises OptionError."""
    from conformance import cases
    from conformance.suite import Selection

    option = config.option
    options.seconds("--cell-timeout", option.cell_timeout)
    options.keyword(option.keyword)
    return Selection(
        tier=cases.TIERS[options.one_of("--tier", "tier", option.tier, cases.TIERS)],
        dtypes=options.names("--dtypes", "dtype", option.dtypes, DTYPES),
        layouts=options.names("--layouts", "layout", option.layouts, LAYOUTS),
        routes=options.names("--route", "route", option.route, [r.value for r in Route]),
        case=option.case,
    )


# Collection -------------------------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """A family's file in ops/ stands for the cells of its overloads; one in scenarios/ for itself, where asked for."""
    if file_path.parent == SCENARIOS and _scenarios_asked_for(parent.config):
        file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path, nodeid=f"scenarios/{file_path.name}")
        return file
    if file_path.parent != PACKAGE / "ops" or file_path.suffix != ".py" or file_path.stem.startswith("_"):
        return None
    node: OpsFile = OpsFile.from_parent(parent, path=file_path, nodeid=f"ops/{file_path.name}")
    return node


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Timed; and without the collector of garbage, which would walk some hundred thousand items again and again."""
    if not _asked_for(session.config):
        return (yield)
    suite = _suite(session.config)
    started = time.perf_counter()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        suite.collect_s = time.perf_counter() - started


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Cells have no fixtures to be reordered by; where nothing is deselected they need not pass through the hooks."""
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect
    if chosen or not all(isinstance(item, CellItem) for item in items):
        yield
    else:
        cells, items[:] = items[:], []
        try:
            yield
        finally:
            items[:] = cells
    config.stash[_SELECTED] = True


class OpsFile(pytest.File):
    """One family."""

    def collect(self) -> Iterator[CellItem]:
        for cell in _suite(self.config).family(self.path.stem):
            yield CellItem.from_parent(self, name=cell.name, cell=cell)


class CellItem(pytest.Item):
    """One cell."""

    def __init__(self, *, cell: CellId, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def runtest(self) -> None:
        """Items are run by :func:`pytest_runtest_protocol`, in one phase."""


class ScenarioFile(pytest.File):
    """One scenario, in a file of the same name; none in the package's other files."""

    def collect(self) -> Iterator[ScenarioItem]:
        from conformance.scenarios import runner

        if self.path.suffix == ".py" and self.path.stem in runner.names():
            yield ScenarioItem.from_parent(self, name=self.path.stem)


class ScenarioItem(pytest.Item):
    """One scenario on the device, against CPU. Not a cell: it is on no lane's account."""

    def runtest(self) -> None:
        from conformance import backends
        from conformance.scenarios import runner

        needs = runner.lacking(self.name)
        if needs:
            pytest.skip(f"{needs} is not installed")
        try:
            backend = backends.find(self.config.option.backend or backends.default())
        except backends.BackendNotFound as e:
            raise pytest.UsageError(str(e)) from e
        result = runner.run(self.name, backend, SCENARIO_TIMEOUT)
        if result.failure:
            pytest.fail(result.text(), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


# Running ----------------------------------------------------------------------------------------------------------


class _Cells:
    """Runs cells in this process' child, and turns what was observed into reports."""

    def __init__(self, suite: Suite, rules: tuple[Rule, ...], lane: str, timeout: float) -> None:
        from conformance.runner import Runner

        self._suite = suite
        self._rules = rules
        self._lane = lane
        self.runner = Runner(suite, timeout)
        self._gate = self.runner.gate(suite.bring_up)

    def report(self, item: CellItem) -> pytest.TestReport:
        """One report a cell; it carries the observation to whoever keeps the ledger."""
        start = time.time()
        observation = self._observe(item.cell)
        stop = time.time()
        if self._gate:
            item.session.shouldfail = f"bring-up gate: {self._gate}"
        outcome, text, extra = self._verdict(item, observation)
        return pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome=outcome, longrepr=text, when="call",
            start=start, stop=stop, duration=stop - start,
            conformance={"observation": observation.to_json(), "gate": self._gate}, **extra,
        )  # fmt: skip

    def _observe(self, cell: CellId) -> Observation:
        if self._gate:
            return Observation(
                cell, self._suite.route(cell), Status.NOT_REACHED, 0, reason=f"bring-up gate: {self._gate}"
            )
        return self.runner.observe(cell)

    def _verdict(self, item: CellItem, observation: Observation) -> tuple[Any, Any, dict[str, Any]]:
        """(pytest's outcome, its text, attributes of the report)."""
        from conformance.expectations import Verdict, judge

        judged = judge(observation, self._rules, self._lane)
        if judged.verdict is Verdict.EXPECTED_FAILURE:
            reason = judged.rule.reason if judged.rule else ""
            return "skipped", (str(item.path), 0, reason), {"wasxfail": reason}
        if judged.verdict is Verdict.UNEXPECTED_PASS:
            return "failed", f"passed, although a rule expects it to fail: {judged.rule}", {}
        if judged.verdict is Verdict.UNEXPECTED_FAILURE:
            return "failed", "\n\n".join(f.message for f in observation.failures) or observation.reason, {}
        if observation.status is Status.PASS:
            return "passed", None, {}
        return "skipped", (str(item.path), 0, f"{observation.status}: {observation.reason}"), {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """A cell has no set-up and no tear-down, so it makes one report, not three."""
    if not isinstance(item, CellItem):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    item.ihook.pytest_runtest_logreport(report=_cells(item.config).report(item))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _cells(config: pytest.Config) -> _Cells:
    if _CELLS not in config.stash:
        suite = _suite(config)
        config.stash[_CELLS] = _Cells(suite, _rules(config, suite), _lane(config, suite), config.option.cell_timeout)
    return config.stash[_CELLS]


def _rules(config: pytest.Config, suite: Suite) -> tuple[Rule, ...]:
    """The expected failures of this backend. Raises pytest.UsageError for a file or a name that cannot be used."""
    if _RULES not in config.stash:
        config.stash[_RULES] = _read_rules(config, suite)
    return config.stash[_RULES]


def _read_rules(config: pytest.Config, suite: Suite) -> tuple[Rule, ...]:
    from conformance import expectations
    from conformance.toml_table import TomlError

    given = config.option.expected
    file = Path(given) if given else config.rootpath / "matrices" / "expected" / f"{suite.backend.name}.toml"
    if given and not file.is_file():
        raise pytest.UsageError(f"--expected: no file {file}")
    known = expectations.Known(suite.inventory, DTYPES, LAYOUTS)
    try:
        return expectations.load_known(file, known, _lane(config, suite))
    except (TomlError, OSError) as e:
        raise pytest.UsageError(str(e)) from e


def _lane(config: pytest.Config, suite: Suite) -> str:
    return str(config.option.lane_name or suite.lane())


# The account ------------------------------------------------------------------------------------------------------


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Without xdist: the cells that are left after -k and the like are those to account for."""
    config = session.config
    if _asked_for(config) and _SELECTED in config.stash and not _is_worker(config) and not config.option.collectonly:
        _open_ledger(config, [item.cell for item in session.items if isinstance(item, CellItem)], len(session.items))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Under xdist every worker collects the same; the first one's list is the account's."""
    if _asked_for(node.config) and _LEDGER not in node.config.stash:
        _open_ledger(node.config, [cell for id_ in ids if (cell := CellId.parse(id_))], len(ids))


def _open_ledger(config: pytest.Config, cells: list[CellId], items: int) -> None:
    """Begin the account. Raises pytest.UsageError where its directory cannot be written."""
    from conformance.ledger import Ledger

    suite = _suite(config)
    if not items:
        words = {o.base for o in suite.inventory.values()} | {*DTYPES, *LAYOUTS}
        left = options.nothing_left(config.invocation_params.args, config.option.keyword, words)
        config.stash[_CLOSING] = f"ERROR: {left}"
    if not cells:
        return
    lane = _lane(config, suite)
    complete = suite.selection.whole and not config.option.keyword and not config.option.markexpr and _whole(config)
    manifest = suite.manifest(lane, len(cells), complete, tuple(config.invocation_params.args))
    directory = Path(config.option.results) / lane
    try:
        config.stash[_LEDGER] = Ledger(directory, manifest, cells, suite.targets(), _rules(config, suite))
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
    forget = _asked_for(config) and not config.getoption("newfirst", False)
    if forget and config.pluginmanager.has_plugin("nfplugin"):
        # It keeps the ids of all items ever collected for --new-first, and reads and writes them at each run's end:
        # after one full run, some 260,000 of them.
        config.pluginmanager.unregister(name="nfplugin")
    if _is_worker(config) and _asked_for(config):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the controller ends the workers
    if not _is_worker(config):
        config.pluginmanager.register(_Reports(config), "conformance-reports")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """End the child; then, in the process that keeps the ledger, account for every cell and set the exit code."""
    config = session.config
    if _CELLS in config.stash:
        config.stash[_CELLS].runner.close()
    collect_s = config.stash[_SUITE].collect_s if _SUITE in config.stash else 0.0
    if _is_worker(config):
        config.workeroutput[_WORKER_KEY] = (collect_s, cpu_seconds())  # type: ignore[attr-defined]  # xdist's attribute
    elif _LEDGER in config.stash:
        spent = config.stash[_SPENT]
        collect_s = max([collect_s, *(c for c, _ in spent)])
        closing = config.stash[_LEDGER].close(collect_s, cpu_seconds() + sum(cpu for _, cpu in spent))
        unchecked = config.stash[_SUITE].backend.unchecked()
        config.stash[_CLOSING] = "\n".join([*([unchecked] if unchecked else []), closing.text])
        ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if ended or closing.code is Exit.BRING_UP:
            session.exitstatus = int(closing.code)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _CLOSING in config.stash:
        terminalreporter.section("conformance")
        terminalreporter.write_line(config.stash[_CLOSING])


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """One dot for a hundred passing cells: a full run has too many for one each."""
    if not hasattr(report, "conformance") or not report.passed:
        return None
    counted = config.stash.get(_PASSED, 0) + 1
    config.stash[_PASSED] = counted
    return "passed", "." if counted % DOT_EVERY == 0 else "", "PASSED"
