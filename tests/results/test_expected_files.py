"""The file of known failures, which a run and the commands that read the run use."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.results import expected_files
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError
from tests.records import manifest

pytest_plugins = ["pytester"]

RULE = """
[[rule]]
op = "masked_fill.Scalar"
dtype = "float32"
layout = "contiguous"
status = "fail"
reason = "once upon a time"
"""
NAMES = ("given.toml", "adapter.toml", "project.toml", "matrices/expected/demo.toml")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with a ``pyproject.toml``, and with a file for each way to name the known failures."""
    (tmp_path / "matrices/expected").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / name).touch()
    (tmp_path / "pyproject.toml").write_text('[tool.conformance]\nexpected = "project.toml"\n')
    return tmp_path


def test_expected_option_precedes_adapter_project_and_default_file(files: Path) -> None:
    given, adapter, project, default = (files / name for name in NAMES)
    assert expected_files.of_run(str(given), str(adapter), "demo", [files]) == (given, True)
    assert expected_files.of_run(None, adapter, "demo", [files]) == (adapter, True)
    assert expected_files.of_run(None, None, "demo", [files]) == (project, True)
    (files / "pyproject.toml").write_text("[tool.other]\n")
    assert expected_files.of_run("", "", "demo", [files]) == (default, False)


def test_the_root_s_pyproject_comes_before_that_of_the_current_directory(files: Path, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text('[tool.conformance]\nexpected = "../given.toml"\n')
    assert expected_files.of_run(None, None, "demo", [files, below])[0] == files / "project.toml"
    (files / "pyproject.toml").unlink()
    assert expected_files.of_run(None, None, "demo", [files, below])[0].samefile(files / "given.toml")


def test_a_directory_holds_a_file_for_each_backend(files: Path) -> None:
    assert expected_files.of_run(str(files), None, "other", []) == (files / "other.toml", True)


@pytest.mark.parametrize(
    ("option", "adapter", "said"),
    [
        ("nowhere.toml", None, r"^--expected: no file nowhere\.toml; expected known failures"),
        (None, "/nowhere.toml", r"^the backend's adapter, expected: no file /nowhere\.toml"),
        (None, "relative.toml", r"^the backend's adapter, expected: 'relative\.toml' is relative; .*__file__"),
        (None, 3, r"^the backend's adapter, expected: expected a path, got int 3"),
    ],
)
def test_a_wrong_path_is_refused_and_who_named_it_is_said(option: str | None, adapter: object, said: str) -> None:
    with pytest.raises(TomlError, match=said):
        expected_files.of_run(option, adapter, "demo", [Path()])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('expected = "gone.toml"', r"pyproject\.toml: tool\.conformance\.expected: no file .*gone\.toml"),
        ("expected = 3", r"pyproject\.toml: tool\.conformance\.expected: expected a string"),
        ('expectd = "project.toml"', r"pyproject\.toml: tool\.conformance\.expectd: unknown key \(near: expected\)"),
        ("expected", r"pyproject\.toml: not valid TOML"),
    ],
)
def test_a_mistake_in_pyproject_is_refused_and_its_key_is_named(files: Path, text: str, said: str) -> None:
    (files / "pyproject.toml").write_text(f"[tool.conformance]\n{text}\n")
    with pytest.raises(TomlError, match=said):
        expected_files.of_run(None, None, "demo", [files])


def test_readers_take_the_file_that_the_run_took(files: Path) -> None:
    run = manifest()
    for name in ("given.toml", "gone.toml"):
        took = replace(run, expected=expected_files.recorded(files / name, files))
        assert took.expected == name
        assert expected_files.of_results(None, took, files) == files / name
        assert expected_files.to_write(None, took, files) == files / name
    assert expected_files.of_results(None, run, files) == files / "project.toml"
    assert expected_files.of_results(files / "given.toml", run, files) == files / "given.toml"


def test_a_file_elsewhere_is_recorded_in_full(files: Path) -> None:
    assert expected_files.recorded(files / "given.toml", files / "below") == str(files / "given.toml")


def test_readers_say_where_the_file_was_that_is_not_on_this_machine(files: Path) -> None:
    run = replace(manifest(), expected="/another/machine/expected.toml")
    with pytest.raises(TomlError, match=r"^/another/machine/expected\.toml: .* are missing; give --expected PATH$"):
        expected_files.of_results(None, run, files)


def test_only_a_file_to_be_written_may_be_absent(files: Path) -> None:
    new = files / "new.toml"
    assert expected_files.to_write(new, manifest(), files) == new
    with pytest.raises(TomlError, match="--expected: no file"):
        expected_files.of_results(new, manifest(), files)


def install_backend(pytester: pytest.Pytester, expected: str) -> None:
    """Install a backend ``mine``, whose adapter's attribute ``expected`` is the expression ``expected``."""
    lines = ("class Adapter:", "    name, device = 'mine', 'cpu'", f"    expected = {expected}", "adapter = Adapter()")
    pytester.makepyfile(mine="\n".join(lines))
    installed = pytester.mkdir("mine-1.dist-info")
    installed.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    installed.joinpath("entry_points.txt").write_text("[conformance.backends]\nmine = mine:adapter\n")


@pytest.mark.usefixtures("forked_runs")
@pytest.mark.parametrize("named_by", ["option", "adapter attribute", "adapter method", "pyproject"])
def test_a_run_takes_the_rules_and_the_commands_find_them_again(pytester: pytest.Pytester, named_by: str) -> None:
    known = pytester.mkdir("known") / "failures.toml"
    known.write_text(RULE)
    offers = {"adapter attribute": repr(str(known)), "adapter method": f"lambda self: {str(known)!r}"}
    install_backend(pytester, offers.get(named_by, "None"))
    if named_by == "pyproject":
        pytester.makepyprojecttoml('[tool.conformance]\nexpected = "known/failures.toml"\n')
    option = ("--expected", "known/failures.toml") if named_by == "option" else ()
    cells = ("-k", "masked_fill.Scalar and float32-contiguous", "-p", "no:cacheprovider", "--lane-name", "mine")
    named = ("--pyargs", "conformance.ops.masking", "--backend", "mine")
    assert pytester.runpytest_subprocess(*named, *cells, *option).ret == Exit.EXPECTATIONS
    (shown,) = json.loads(command(pytester, "summary", "--format", "json"))
    assert shown["manifest"]["expected"] == "known/failures.toml"
    assert "passed, although" in command(pytester, "summary", "--format", "junit")
    said = command(pytester, "expect", "update", "mine")
    assert said == "known/failures.toml: 0 rules: 0 kept, 0 new; 1 dropped\n"


def command(pytester: pytest.Pytester, *arguments: str) -> str:
    """Return the output of a ``conformance`` command, run in a new process: duckdb cannot be imported twice."""
    return pytester.run(sys.executable, "-m", "conformance.cli", *arguments).stdout.str() + "\n"
