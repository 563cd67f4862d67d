"""The pytest sessions that load the suite's plugin, and other sessions, which it does not affect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import conformance
from conformance.plugin import pytest_addoption
from conformance.support.exit_codes import Exit

pytest_plugins = ["pytester"]

PACKAGE = Path(conformance.__file__).parent
WORKERS = [(), ("-n", "1")]
ONE_CELL = ("-k", "masked_fill.Scalar and float32-contiguous", "--backend", "torch:cpu", "-p", "no:cacheprovider")


class Names:
    """A stand-in for pytest's parser that collects the names of the plugin's options."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def getgroup(self, *_: str) -> Names:
        return self

    def addoption(self, *names: str, **_: Any) -> None:
        self.found += names


def option_names() -> list[str]:
    names = Names()
    pytest_addoption(cast(pytest.Parser, names))
    assert "--backend" in names.found
    return names.found


@pytest.fixture
def foreign(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a project whose conftest.py has options with the names of all the suite's options."""
    lines = "\n".join(f"    parser.addoption({name!r}, default='theirs')" for name in option_names())
    pytester.makeconftest(f"def pytest_addoption(parser):\n{lines}\n")
    pytester.makepyfile("def test_it(request):\n    assert request.config.getoption('--backend') == 'given'\n")
    return pytester


@pytest.mark.parametrize("workers", WORKERS)
def test_a_project_with_options_of_the_same_names_runs(foreign: pytest.Pytester, workers: tuple[str, ...]) -> None:
    foreign.runpytest_subprocess("--backend", "given", *workers).assert_outcomes(passed=1)


def test_a_project_with_a_package_of_the_same_name_runs(tmp_path: Path) -> None:
    own = tmp_path / "conformance"
    own.mkdir()
    for module in ("__init__.py", "theirs.py"):
        (own / module).touch()
    for file in (tmp_path / "test_it.py", own / "test_own.py"):
        file.write_text("def test_it():\n    import conformance.theirs\n")
    # Start as the command `pytest` does: `python -m pytest` would put the current directory on the path.
    command = (sys.executable, "-c", "import sys, pytest; del sys.path[0]; sys.exit(pytest.main())")
    for named in ((), ("conformance",)):
        done = subprocess.run([*command, *named], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == Exit.OK, done.stdout


def test_other_pytest_sessions_import_neither_the_suite_nor_torch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it():\n    assert not {'conformance', 'torch'} & set(sys.modules)\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_other_pytest_sessions_do_not_have_the_options(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--backend", "refused")
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines(["*unrecognized arguments: --backend*"])
    assert "--cell-timeout" not in pytester.runpytest_subprocess("--help").stdout.str()


@pytest.mark.parametrize("named", [("--pyargs", "conformance"), (str(PACKAGE),), (str(PACKAGE / "ops" / "fft.py"),)])
def test_help_lists_the_options_if_the_suite_is_named(pytester: pytest.Pytester, named: tuple[str, ...]) -> None:
    said = pytester.runpytest_subprocess(*named, "--help").stdout.str()
    assert [name for name in option_names() if name not in said] == []


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("named", [("--pyargs", "conformance.ops.masking"), (str(PACKAGE / "ops" / "masking.py"),)])
def test_options_may_come_before_and_after_the_path(
    pytester: pytest.Pytester, named: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    pytester.runpytest_subprocess("--tier", "smoke", *named, *ONE_CELL, *workers).assert_outcomes(passed=2)


def test_the_plugin_may_also_be_loaded_by_name(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("-p", "conformance.plugin", "--pyargs", "conformance.ops.masking", *ONE_CELL)
    result.assert_outcomes(passed=2)


def test_a_collision_of_options_is_one_line_with_the_way_out(foreign: pytest.Pytester) -> None:
    named = ("--pyargs", "conformance.ops.masking", *ONE_CELL)
    result = foreign.runpytest_subprocess(*named)
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines([f"*already an option of a conftest.py*{foreign.path / 'conftest.py'}*--noconftest*"])
    assert "Traceback" not in result.stderr.str()
    foreign.runpytest_subprocess(*named, "--noconftest").assert_outcomes(passed=2)


@pytest.mark.parametrize("workers", WORKERS)
def test_the_suite_s_modules_are_imported_as_they_are_written(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        probe="""
        import sys

        def pytest_sessionfinish():
            loaders = {type(m.__spec__.loader) for n, m in sys.modules.items() if n.startswith("conformance.")}
            with open("loaders.txt", "a") as file:
                print(*sorted(loader.__name__ for loader in loaders), file=file)
        """
    )
    done = pytester.runpytest_subprocess("--pyargs", "conformance.ops.masking", *ONE_CELL, "-p", "probe", *workers)
    assert done.ret == Exit.OK
    assert set((pytester.path / "loaders.txt").read_text().splitlines()) == {"SourceFileLoader"}
