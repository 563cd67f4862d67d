"""The pytest entry point: loads the suite's plugin in the sessions whose arguments name the suite, and in no others.

pytest imports this module in every session of an environment in which the suite is installed. The module is not part of
the package ``conformance``, because importing that package would hide another project's package of the same name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

from op_conformance import PACKAGE, hidden

PLUGIN = "conformance.plugin"


class AsWritten:
    """Finds the modules of the suite before pytest does, which rewrites the assertions of every plugin's package.

    None of the suite's assertions is a test's, and to rewrite 300 modules takes a second of each process that Python
    writes no bytecode for.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module inside of the package."""
        return PathFinder.find_spec(name, path, target) if name.startswith(f"{PACKAGE.name}.") else None


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Iterator[None]:
    """Load the plugin once the options of the project's own conftest files are known.

    Raises pytest.UsageError if another plugin has an option of the same name.
    """
    yield
    if not _names_the_suite(early_config, parser, args):
        return
    sys.meta_path.insert(0, AsWritten())
    try:
        early_config.pluginmanager.import_plugin(PLUGIN)
        parser.parse_known_args(args)  # pytest before 9 compares the names of options only here
    except (ValueError, argparse.ArgumentError) as e:
        raise pytest.UsageError(_collision(early_config, e)) from e


def _names_the_suite(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> bool:
    """Whether an argument is a path in the package or, with --pyargs, the name of the package or of a module in it.

    Raises pytest.UsageError if another package hides it, and there are options that pytest does not know.
    """
    known, unknown = parser.parse_known_and_unknown_args(args)
    # The options of the suite are unknown here, and argparse keeps some positional arguments behind them apart.
    given = [*known.file_or_dir, *(arg for arg in unknown if not arg.startswith("-"))] or config.getini("testpaths")
    if any(_in_package(config.invocation_params.dir / str(arg).partition("::")[0]) for arg in given):
        return True
    if not config.known_args_namespace.pyargs or not any(_names_package(str(arg)) for arg in given):
        return False
    if (problem := hidden()) and any(arg.startswith("-") for arg in unknown):
        raise pytest.UsageError(f"op-conformance: {problem}; install the suite in an environment of its own")
    return not problem


def _in_package(path: Path) -> bool:
    return path.resolve().is_relative_to(PACKAGE)


def _names_package(name: str) -> bool:
    return name.partition("::")[0].partition(".")[0] == PACKAGE.name


def _collision(config: pytest.Config, error: Exception) -> str:
    """Say which option is taken, by which conftest files it may be, and how to run the suite all the same."""
    conftests = [name for name, _ in config.pluginmanager.list_name_plugin() if name.endswith("conftest.py")]
    loaded = f" (loaded: {', '.join(conftests)})" if conftests else ""
    return (
        f"op-conformance: an option of the suite is already an option of a conftest.py or of another plugin{loaded}: "
        f"{error}; run the suite with --noconftest, or without that plugin (-p no:NAME)"
    )
