"""The start of a process of a lane: interpreter, variables, and the `lane` command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import cli
from conformance.lanes import matrix, process
from tests.lanes.test_matrix import GOOD

PLAIN, ASAN = "demo-torch2.8-guard-release", "demo-torch2.8-guard-asan"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with one matrix, in which the environments of torch 2.8 exist."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "demo.toml").write_text(GOOD)
    (tmp_path / ".nox").mkdir()
    for environment in ("torch-2.8", "torch-2.8-asan"):
        process.interpreter_file(tmp_path, environment).write_text(sys.executable)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_lane_without_sanitizers_sets_what_its_environment_sets(root: Path) -> None:
    start = process.start(root, PLAIN)
    assert start.python == sys.executable
    assert start.variables == {"DEMO_ALLOCATOR": "guard", "DEMO_CHECK": "1"}


def test_a_sanitizer_lane_preloads_the_runtime_and_its_suppressions(root: Path) -> None:
    variables = process.start(root, ASAN).variables
    assert variables["DEMO_ALLOCATOR"] == "guard"
    assert "libasan" in variables["LD_PRELOAD"]
    assert f"suppressions={root}/backend/leaks.supp" in variables["LSAN_OPTIONS"]


def test_a_missing_environment_is_an_error_that_names_its_nox_session(root: Path) -> None:
    with pytest.raises(process.NotMade, match=r"create it with: nox -s torch-2\.13-asan"):
        process.start(root, "demo-torch2.13-malloc-asan")


def test_an_unknown_lane_is_answered_with_near_ones(root: Path) -> None:
    with pytest.raises(LookupError, match=PLAIN):
        process.start(root, "demo-torch2.8-guard-releas")


def test_beside_other_backends_an_environment_is_named_after_its_own(root: Path) -> None:
    (root / "matrices" / "other.toml").write_text(GOOD.replace('"demo"', '"other"'))
    _, environment = process.find(root, ASAN)
    assert environment == "torch-demo-2.8-asan"


def test_a_command_runs_in_place_of_the_process_with_the_lane_s_variables_and_interpreter(root: Path) -> None:
    program = "import os, sys; print(os.getpid()); sys.exit(42 if os.environ['DEMO_ALLOCATOR'] == 'guard' else 1)"
    words = [sys.executable, "-m", "conformance.cli", "lane", PLAIN, "--", "python", "-c", program]
    with subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True) as started:
        said, _ = started.communicate()
    assert (started.returncode, said) == (42, f"{started.pid}\n")


def test_the_command_refuses_an_unknown_lane(root: Path) -> None:
    result = CliRunner().invoke(cli.commands, ["lane", "demo", "--", "python"])
    assert result.exit_code == 2
    assert "unknown lane 'demo'; near: " in result.output


def test_the_command_names_a_program_that_cannot_be_run(root: Path) -> None:
    result = CliRunner().invoke(cli.commands, ["lane", PLAIN, "--", str(root / "no_such_program")])
    assert result.exit_code == 2
    assert "no_such_program: cannot be run: No such file or directory; expected a program" in result.output


def test_the_lanes_of_another_build_run_on_demand() -> None:
    root = Path(__file__).parents[2]
    for found in matrix.load_all(root / "matrices"):
        assert all(lane.on_demand for lane in found.lanes() if lane.build.sanitizers)
        assert all((root / b.suppressions).is_file() for b in found.builds if b.suppressions)
