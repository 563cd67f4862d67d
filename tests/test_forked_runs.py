"""Forked runs behave as new processes do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import forked_runs
from tests.forked_runs import Run, can_be_forked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")

# Prints the state that Python and torch set at the start of a process, and what the suite's tests left behind.
TELLS = """
import atexit, os, sys
atexit.register(print, "at exit")
here = [sys.path, sys.argv, sys.orig_argv, os.getcwd(), __name__, os.environ.get("DEMO")]
print(here, [name for name in sys.modules if name.startswith("tests")], len(os.listdir("/proc/self/fd")))
print("an error", file=sys.stderr)
"""
ENDS = {
    "returns": "", "exit": "sys.exit(3)", "message": "sys.exit('what went wrong')", "raises": "raise ValueError('no')",
    "signal": "os.kill(os.getpid(), 9)", "interrupted": "raise KeyboardInterrupt",
}  # fmt: skip


@pytest.mark.parametrize(
    ("end", "program"), [*((end, ("-m", "demo")) for end in ENDS), ("message", ("below/demo.py",))]
)
def test_a_forked_run_ends_as_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, program: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DEMO", "x")
    (tmp_path / "below").mkdir()
    for file in (tmp_path / "demo.py", tmp_path / "below/demo.py"):
        file.write_text(TELLS + ENDS[end])
    command = (sys.executable, *program, "an argument")
    assert can_be_forked(command, os.environ)
    forked = forked_runs.run(command, tmp_path)
    new = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (forked.returncode, forked.stdout) == (new.returncode, new.stdout)
    assert forked.stderr.splitlines()[:1] == new.stderr.splitlines()[:1] == ["an error"]
    assert forked.stderr.splitlines()[-1] == new.stderr.splitlines()[-1]


# Prints the state that earlier runs, a backend or the tests would leave in a process.
STATE = """
import sys, torch

def pytest_unconfigure():
    loaded = [name for name in ("refnpu", "hypothesis", "tests", "xdist") if name in sys.modules]
    print("STATE", loaded, len(sys.meta_path), torch.get_num_threads())
"""


def test_a_forked_run_of_the_suite_prints_what_a_new_process_prints(tmp_path: Path) -> None:
    (tmp_path / "state.py").write_text(STATE)
    selection = ("--backend", "torch:cpu", "-k", "masked_fill.Scalar and float32-contiguous", "--jobs", "1")
    options = ("-p", "state", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    command = (sys.executable, "-m", "pytest", "--pyargs", "conformance.ops.masking", *selection, *options)
    assert can_be_forked(command, os.environ)
    forked = forked_runs.run(command, tmp_path)
    new = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "accounting: 2 collected = 2 pass" in forked.stdout
    assert "STATE ['xdist']" in forked.stdout
    assert (forked.returncode, forked.stderr, untimed(forked.stdout)) == (0, new.stderr, untimed(new.stdout))


def untimed(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("time: ")]
    return re.sub(r"\d+\.\d+s =*|=* \d+ passed", "", "\n".join(lines))


def test_a_run_that_hangs_is_killed_and_its_output_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_runs, "LIMIT", 1)
    (tmp_path / "demo.py").write_text("import time; print('I hang', flush=True); time.sleep(1000)")
    with (tmp_path / "said").open("wb") as said:
        hangs = forked_runs.start((sys.executable, "-m", "demo"), tmp_path, said)
    assert isinstance(hangs, Run)
    while not (tmp_path / "said").read_text().endswith("\n"):
        time.sleep(0.01)
    with pytest.raises(AssertionError, match="did not end within 1 s; its output:\nI hang"):
        hangs.wait()
    assert hangs.poll() in {-signal.SIGABRT, -signal.SIGKILL}


@pytest.mark.parametrize(
    ("arguments", "variables", "forks"),
    [
        (("-m", "pytest"), {}, True),
        (("-mpytest",), {"REFNPU_FAULT": "x", "PYTHONPATH": "x"}, True),
        (("-m", "pytest"), {"OMP_NUM_THREADS": "1"}, False),
        (("-m", "pytest", "-n", "2"), {}, False),
        (("program.py",), {}, True),
        (("-c", "pass"), {}, False),
    ],
)
def test_runs_that_could_tell_the_difference_are_new_processes(
    arguments: tuple[str, ...], variables: dict[str, str], forks: bool
) -> None:
    assert can_be_forked((sys.executable, *arguments), os.environ | variables) is forks
