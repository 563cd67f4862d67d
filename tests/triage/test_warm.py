"""Processes forked from a warm process behave like new processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import vocabulary  # does nothing when run as a program
from conformance.triage.job import Job
from conformance.triage.warm import Forked, Warm, forkable
from tests.calls.test_calls import BACKEND

# The program of a test's process: its first argument selects the action.
MODULE = """
import os, sys, time

def main(arguments):
    what, *rest = arguments
    if what == "tell":
        print(*rest, os.environ.get("DEMO"), os.environ.get("HOME"), "torch" in sys.modules, "refnpu" in sys.modules)
    elif what == "echo":
        for line in sys.stdin:
            print("heard", line.strip(), flush=True)
    elif what == "exit":
        os._exit(int(rest[0]))
    elif what == "die":
        os.kill(os.getpid(), 11)
    elif what == "raise":
        raise ValueError("as asked")
    elif what == "wait":
        open(rest[0], "w").close()
        time.sleep(1000)
    elif what == "sleep":
        time.sleep(1000)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    if sys.platform != "linux":
        pytest.skip("processes are forked on Linux only")
    where = tmp_path_factory.mktemp("warm")
    (where / "demo_process.py").write_text(MODULE)
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{where}:{Path(__file__).parents[2]}"
    try:
        with Warm(sys.executable) as started:
            yield started
    finally:
        os.environ["PYTHONPATH"] = before


def started(warm: Warm, where: Path, *arguments: str, **environment: str) -> Forked:
    with (where / "said").open("wb") as output:
        return warm.run("demo_process", arguments, environment, output)


def test_a_warm_process_has_the_given_variables_and_torch_but_no_backend(warm: Warm, tmp_path: Path) -> None:
    assert started(warm, tmp_path, "tell", "x", DEMO="exact").wait(300) == 0
    assert (tmp_path / "said").read_text() == "x exact None True False\n"


@pytest.mark.parametrize(("end", "status"), [(("exit", "3"), 3), (("die",), -signal.SIGSEGV), (("raise",), 1)])
def test_how_it_ends_is_told_as_subprocess_would(warm: Warm, tmp_path: Path, end: tuple[str, ...], status: int) -> None:
    ended = started(warm, tmp_path, *end)
    assert ended.wait(300) == status
    assert ended.poll() == ended.returncode == status
    if status == 1:
        assert "ValueError: as asked" in (tmp_path / "said").read_text()


def test_a_child_of_a_warm_process_can_be_killed(warm: Warm, tmp_path: Path) -> None:
    sleeps = started(warm, tmp_path, "sleep")
    assert sleeps.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        sleeps.wait(0.05)
    sleeps.kill()
    assert sleeps.wait(300) == -signal.SIGKILL
    sleeps.kill()  # the process is gone, and no process that reuses its id is killed


def test_ctrl_c_ends_a_forked_process_and_not_the_warm_one(warm: Warm, tmp_path: Path) -> None:
    assert started(warm, tmp_path, "tell").wait() == 0  # so the warm process has begun
    os.kill(warm._process.pid, signal.SIGINT)  # noqa: SLF001
    child = started(warm, tmp_path, "wait", str(tmp_path / "begun"))
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGINT)
    assert child.wait() == 1
    assert "KeyboardInterrupt" in (tmp_path / "said").read_text()


def test_a_warm_process_communicates_by_pipes(warm: Warm) -> None:
    talks = warm.talk("demo_process", ["echo"], {})
    assert talks.stdin
    assert talks.stdout
    print("you", file=talks.stdin, flush=True)
    assert talks.stdout.readline() == "heard you\n"
    talks.stdin.close()
    assert talks.wait(300) == 0
    talks.stdout.close()


def test_children_of_a_warm_process_die_with_it_and_no_other_is_forked(tmp_path: Path) -> None:
    with Warm(sys.executable) as warm, (tmp_path / "said").open("wb") as output:
        sleeps = warm.run("conformance.triage.prober", ["no such backend"], {}, output)
        talks = warm.talk("conformance.triage.prober", ["torch:cpu"], dict(os.environ))
    assert sleeps.wait(300) == 1
    assert "unknown backend" in (tmp_path / "said").read_text()
    ends = time.monotonic() + 120
    while Path(f"/proc/{talks.pid}").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert not Path(f"/proc/{talks.pid}").exists()
    with pytest.raises(OSError, match="Bad file descriptor"):
        started(warm, tmp_path, "tell")
    for pipe in (talks.stdin, talks.stdout):
        assert pipe
        pipe.close()


@pytest.mark.parametrize(
    ("variables", "early"),
    [({"DEMO_ALLOCATOR": "pool"}, True), ({}, True), ({"OMP_NUM_THREADS": "1"}, False), ({"LD_PRELOAD": "x"}, False)],
)
def test_variables_that_are_read_at_the_start_need_a_process_of_their_own(
    variables: dict[str, str], early: bool
) -> None:
    assert forkable(variables) is early


def test_a_program_as_the_user_runs_it_is_started_not_forked(tmp_path: Path) -> None:
    """A program in a lane whose variables are read at the start is not forked either."""
    lanes = {"as it is": {}, "single thread": {}, "exact": {"DEMO": "1"}, "threads": {"OMP_NUM_THREADS": "2"}}
    warm = Recorder()
    job = Job(BACKEND, "torch:cpu", (), sys.executable, lanes, (), tmp_path, 60, print, warm)  # type: ignore[arg-type]  # it plays the part
    with (tmp_path / "said").open("wb") as output:
        for lane in lanes:
            job.run(vocabulary, [], lane, output).wait(300)
    assert warm.lanes == ["1"]


def test_where_the_warm_process_is_gone_one_is_started(tmp_path: Path) -> None:
    gone = Recorder(OSError("gone"))
    job = Job(BACKEND, "torch:cpu", (), sys.executable, {"exact": {"DEMO": "1"}}, (), tmp_path, 60, print, gone)  # type: ignore[arg-type]  # it plays the part
    with (tmp_path / "said").open("wb") as output:
        assert job.run(vocabulary, [], "exact", output).wait(300) == 0


class Recorder:
    """A stand-in for a warm process, which records the lanes."""

    def __init__(self, error: OSError | None = None) -> None:
        self.lanes: list[str] = []
        self.error = error

    def run(self, module: str, arguments: object, environment: dict[str, str], output: object) -> subprocess.Popen[str]:
        if self.error:
            raise self.error
        self.lanes.append(environment["DEMO"])
        return subprocess.Popen(["true"], text=True)
