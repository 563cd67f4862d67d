"""The options of a run, and the plan, the known failures and the lane that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.layouts import CONTEXTS, LAYOUTS
from conformance.plugin import markers
from conformance.records import Setting
from conformance.results import expected_files
from conformance.results.store.manifest import series_name
from conformance.running import isolation
from conformance.running.deaths import SECONDS
from conformance.running.failures import SECONDS as FAILURE_SECONDS
from conformance.running.isolation import MODES
from conformance.support import options
from conformance.support.machine import cores
from conformance.vocabulary import DEFAULT_SEED, DTYPES, SCENARIOS, TIERS, Route

if TYPE_CHECKING:
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection
    from conformance.plan.tiers import Tier
    from conformance.results.expectations import KnownFailure

PACKAGE = Path(__file__).resolve().parents[1]

PLAN = pytest.StashKey["Plan"]()
# The name of the cells without a context in --contexts.
PLAIN_CALLS = "plain"
# Options of pytest that select some of the collected cells.
_SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise")

_ISOLATION = pytest.StashKey[tuple[str, str]]()
_KNOWN_FAILURES = pytest.StashKey["tuple[KnownFailure, ...]"]()
_EXPECTED = pytest.StashKey[tuple[Path, bool]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "op conformance of a device backend")
    _add_selection(group)
    _add_processes(group)
    _add_results(group)


def _add_selection(group: pytest.OptionGroup) -> None:
    """Add the options that select the backend and its cells."""
    group.addoption(
        "--backend",
        metavar="NAME",
        help="an installed backend, a shipped adapter, or module:device (default: the only one installed)",
    )
    group.addoption("--tier", metavar="|".join(TIERS), help="how many cells and cases run (default: the lane's tier)")
    group.addoption("--dtypes", metavar="A,B", help="only cells of these dtypes")
    group.addoption("--layouts", metavar="A,B", help="only cells of these layouts")
    group.addoption(
        "--contexts", metavar="A,B", help="only cells of these contexts, which are layouts too; plain: of all others"
    )
    group.addoption("--route", metavar="A,B", help="only overloads with these routes")
    group.addoption(
        "--case", metavar="ID", default="", action=_Once, help="only this case; failure messages contain the ID"
    )
    group.addoption(
        "--seed", type=int, default=DEFAULT_SEED, metavar="N",
        help=f"seed of the random overloads (default: {DEFAULT_SEED})",
    )  # fmt: skip
    group.addoption(
        "--shard", metavar="I/N", default="", help="only the I-th of N parts of the selected cells, of equal duration"
    )
    group.addoption(
        "--shard-by", metavar="RUN", default="",
        help="the run whose durations are used to split the cells (default: the lane's latest run; if there is none, "
        "what cells of a layout typically take)",
    )  # fmt: skip


def _add_processes(group: pytest.OptionGroup) -> None:
    """Add the options of the processes in which cells run."""
    group.addoption(
        "--cell-timeout", type=float, default=60.0, metavar="S",
        help="seconds a cell may take (default: 60), without most of those in which it waits for a processor;"
        " a scenario may take five times as long",
    )  # fmt: skip
    group.addoption(
        "--jobs", type=int, metavar="N",
        help="processes that run cells side by side (default: the cores, with -n 0 one); not used with pytest-xdist",
    )  # fmt: skip
    group.addoption(
        "--isolation", default="auto", metavar="|".join(MODES),
        help="whether the child processes that run cells are forked or spawned (default: auto, the backend decides)",
    )  # fmt: skip
    group.addoption(
        "--death-budget", type=float, default=SECONDS, metavar="S",
        help="seconds that each worker spends on repeating crashes, to find out whether they are steady, flaky, or "
        f"caused by an earlier op (default: {SECONDS:g})",
    )  # fmt: skip
    group.addoption(
        "--failure-budget", type=float, default=FAILURE_SECONDS, metavar="S",
        help="seconds that each worker spends on repeating cases that differ, to find out whether they fail alone, in "
        f"some runs, or only after an earlier case; 0 repeats none (default: {FAILURE_SECONDS:g})",
    )  # fmt: skip
    group.addoption(
        "--after", metavar="ID", action="append", default=[],
        help="with --case: a case, or a cell with all its cases, that runs before it in the same process; may be given "
        "several times",
    )  # fmt: skip
    group.addoption(
        "--runs", type=int, default=1, metavar="N",
        help="with --case: run it in up to N fresh processes, until it fails (default: 1)",
    )  # fmt: skip


def _add_results(group: pytest.OptionGroup) -> None:
    """Add the options of the results: their directory, their lane, and the known failures."""
    group.addoption(
        "--lane-name", metavar="NAME", help="the lane's name (default: from backend, torch, environment and build)"
    )
    group.addoption(
        "--lane-tier", default="full", metavar="|".join(TIERS), help="tier of a complete run (default: full)"
    )
    group.addoption(
        "--results", default="results", metavar="DIR", help="directory for the results of all lanes (default: results)"
    )
    group.addoption(
        "--resume",
        action="store_true",
        help="continue the interrupted run in results/<series>/; its cells do not run again",
    )
    group.addoption(
        "--expected", metavar="PATH",
        help="known failures: a file, or a directory with <backend>.toml (default: the path in the backend's adapter "
        "or in pyproject.toml, else matrices/expected)",
    )  # fmt: skip


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is a worker of pytest-xdist."""
    return hasattr(config, "workerinput")


def asked_for(config: pytest.Config) -> bool:
    """Return whether the arguments select cells: the package's path, a path in it, or its name with --pyargs."""
    return bool(config.option.case) or any(where.is_relative_to(PACKAGE) for where in _named(config))


def _named(config: pytest.Config) -> Iterator[Path]:
    """Yield the files and directories that the arguments name."""
    for arg in config.args:
        path = arg.partition("::")[0]
        if config.option.pyargs and path.partition(".")[0] == PACKAGE.name:
            yield PACKAGE.joinpath(*path.split(".")[1:])
        yield (config.invocation_params.dir / path).resolve()


class _Once(argparse.Action):
    """An action that refuses a second, different value of an option, which would silently replace the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest, None) not in ("", None, values):
            parser.error(f"{option_string}: given twice; expected one {self.metavar}, run the others after it")
        setattr(namespace, self.dest, values)


class UnknownCaseError(LookupError):
    """``--case`` names no case of this torch version and corpus."""


def plan_of(config: pytest.Config) -> Plan:
    """Return the plan of this process, made on first use. Raises pytest.UsageError or UnknownCaseError."""
    if PLAN not in config.stash:
        from conformance import backends
        from conformance.corpus.reader import CorpusError
        from conformance.plan.plan import Plan

        try:
            selection = _selection(config)
            backend = backends.find(config.option.backend or backends.default())
            config.stash[PLAN] = Plan(backend, selection, config.option.seed)
        except (options.OptionError, backends.BackendNotFound, CorpusError) as e:
            raise pytest.UsageError(str(e)) from e
        if selection.case and not config.stash[PLAN].knows(selection.case):
            raise UnknownCaseError(f"--case: {config.stash[PLAN].unknown_case(selection.case)}")
    return config.stash[PLAN]


def _selection(config: pytest.Config) -> Selection:
    """Return the selection of the options. Raises OptionError."""
    from conformance.plan.selection import Selection

    option = config.option
    options.seconds("--cell-timeout", option.cell_timeout)
    options.budget("--death-budget", option.death_budget)
    options.budget("--failure-budget", option.failure_budget)
    options.seed("--seed", option.seed)
    options.file_name("--lane-name", option.lane_name or "")
    options.one_of("--isolation", "mode", option.isolation, MODES)
    options.one_of("--lane-tier", "tier", option.lane_tier, TIERS)
    options.keyword(option.keyword)
    markers.expression_of(config)
    return Selection(
        tier=_tier_of(config),
        dtypes=options.names("--dtypes", "dtype", option.dtypes, DTYPES),
        layouts=_layouts(config),
        routes=options.names("--route", "route", option.route, [r.value for r in Route]),
        case=option.case,
    )


def _layouts(config: pytest.Config) -> frozenset[str] | None:
    """Return the layouts and contexts that the options select, None if neither is given. Raises OptionError."""
    option = config.option
    layouts = options.names("--layouts", "layout", option.layouts, LAYOUTS)
    contexts = options.names("--contexts", "context", option.contexts, (PLAIN_CALLS, *CONTEXTS))
    if contexts is None:
        return layouts
    plain = frozenset(LAYOUTS) - frozenset(CONTEXTS) if PLAIN_CALLS in contexts else frozenset()
    return (layouts or frozenset()) | plain | (contexts - {PLAIN_CALLS})


def _tier_of(config: pytest.Config) -> Tier:
    """Return the tier of --tier. The default is the tier of the lane, or with --case `wide`, which has every case."""
    if config.option.tier is not None:
        return _tier("--tier", config.option.tier)
    return _tier("--case", "wide") if config.option.case else whole_lane(config).tier


def whole_lane(config: pytest.Config) -> Selection:
    """Return the selection of a complete run of the lane. Raises OptionError."""
    from conformance.plan.selection import Selection

    return Selection(tier=_tier("--lane-tier", config.option.lane_tier))


def _tier(option: str, name: str) -> Tier:
    from conformance.plan import tiers

    return tiers.TIERS[options.one_of(option, "tier", name, TIERS)]


def known_failures_of(config: pytest.Config, plan: Plan) -> tuple[KnownFailure, ...]:
    """Return the known failures of this backend. Raises pytest.UsageError for an unusable file or an unknown name."""
    if _KNOWN_FAILURES not in config.stash:
        config.stash[_KNOWN_FAILURES] = _read_known_failures(config, plan)
    return config.stash[_KNOWN_FAILURES]


def _read_known_failures(config: pytest.Config, plan: Plan) -> tuple[KnownFailure, ...]:
    from conformance.results import expectations
    from conformance.support.toml_table import TomlError

    overloads = [*plan.inventory, *(cell.overload for cell in plan.scenarios())]
    known = expectations.Names(overloads, DTYPES, LAYOUTS)
    try:
        return expectations.load_checked(_expected(config, plan)[0], known, lane_of(config, plan))
    except (TomlError, OSError) as e:
        raise pytest.UsageError(str(e)) from e


def expected_of(config: pytest.Config, plan: Plan) -> str:
    """Return the path of the known failures for the manifest, "" if it is the default path."""
    file, named = _expected(config, plan)
    return expected_files.recorded(file, config.invocation_params.dir) if named else ""


def _expected(config: pytest.Config, plan: Plan) -> tuple[Path, bool]:
    """Return the file of known failures, and whether the user or the backend named it. Raises TomlError."""
    if _EXPECTED not in config.stash:
        backend, directories = plan.backend, [config.rootpath, config.invocation_params.dir]
        config.stash[_EXPECTED] = expected_files.of_run(
            config.option.expected, backend.expected(), backend.name, directories
        )
    return config.stash[_EXPECTED]


def isolation_of(config: pytest.Config, plan: Plan) -> tuple[str, str]:
    """Return fork or spawn, and a note for the user.

    Raises pytest.UsageError if children are to be forked and could not use the device.
    """
    if _ISOLATION not in config.stash:
        backend = plan.backend
        try:
            config.stash[_ISOLATION] = isolation.choose(config.option.isolation, backend.isolation, backend.in_use())
        except ValueError as e:
            raise pytest.UsageError(f"--isolation: {e}") from e
    return config.stash[_ISOLATION]


def jobs_of(config: pytest.Config) -> int:
    """Return the number of cells that run side by side. Raises pytest.UsageError."""
    asked = config.option.jobs
    if asked is None:
        one = config.option.case or getattr(config.option, "numprocesses", None) == 0
        return 1 if one else cores()
    if asked < 1:
        raise pytest.UsageError(f"--jobs: expected 1 or more processes, got {asked}")
    return int(asked)


def setting_of(config: pytest.Config) -> Setting | None:
    """Return the setting of --after and --runs, None without them. Raises pytest.UsageError."""
    option = config.option
    if not option.after and option.runs == 1:
        return None
    if not option.case:
        raise pytest.UsageError("--after and --runs: need --case, the case that runs after others or several times")
    if option.runs < 1:
        raise pytest.UsageError(f"--runs: expected 1 or more, got {option.runs}")
    plan = plan_of(config)
    for one in option.after:
        if not plan.precedes(one):
            raise pytest.UsageError(f"--after: {plan.unknown_case(one)}")
    return Setting(tuple(option.after), option.runs)


def directory_of(config: pytest.Config, plan: Plan) -> Path:
    """Return the directory of the results of this run's series."""
    return Path(config.option.results) / series_of(config, plan)


def series_of(config: pytest.Config, plan: Plan) -> str:
    """Return the series of this run, see ``series_name``. Runs of some cells are not in the series of the lane."""
    lane, tier, every_cell = lane_of(config, plan), plan.selection.tier, is_of_all(config, plan)
    complete = every_cell and tier == whole_lane(config).tier
    return series_name(lane, complete=complete, tier=tier.name if every_cell else "")


def is_of_all(config: pytest.Config, plan: Plan) -> bool:
    """Return whether the options select all cells of a tier."""
    return plan.selection == replace(whole_lane(config), tier=plan.selection.tier) and _names_all(config)


def _names_all(config: pytest.Config) -> bool:
    """Return whether the arguments name the whole package, and pytest's own options select no part of it."""
    here = config.invocation_params.dir
    some = any(config.getoption(name, None) for name in _SELECTING)
    whole = (a == PACKAGE.name and config.option.pyargs or (here / a).resolve() == PACKAGE for a in config.args)
    return any(whole) and not some and not _ignores_cells(config)


def _ignores_cells(config: pytest.Config) -> bool:
    """Return whether --ignore or --ignore-glob leaves out a file of cells."""
    here = config.invocation_params.dir
    paths = {(here / path).resolve() for path in config.getoption("ignore", None) or ()}
    globs = [str(here / pattern) for pattern in config.getoption("ignore_glob", None) or ()]
    files = [file for directory in ("ops", SCENARIOS) for file in (PACKAGE / directory).glob("*.py")]
    return any(x in paths or any(fnmatch(str(x), g) for g in globs) for f in files for x in (f, f.parent))


def lane_of(config: pytest.Config, plan: Plan) -> str:
    return str(config.option.lane_name or _own_lane(plan))


def _own_lane(plan: Plan) -> str:
    """Return the name of the lane of this process, e.g. ``mydev-torch2.8-malloc-release``."""
    import torch

    from conformance.lanes.matrix import lane_name

    build = str(plan.backend.build_info().get("build_type", "release")).lower()
    return lane_name(plan.backend.name, _short(torch.__version__), plan.backend.environment(), build)


def _short(version: str) -> str:
    """Return ``2.8`` for ``2.8.0+cu128``."""
    return ".".join(version.partition("+")[0].split(".")[:2])
