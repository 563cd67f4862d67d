"""Interrupted runs: their observations, and `--resume`."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.results import store
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status
from tests import forked_runs

COMMAND = (
    sys.executable, "-m", "pytest", "--pyargs", "conformance.ops.masking", "--backend", "torch:cpu", "-q",
    "-p", "no:cacheprovider", "-k", "masked_fill and not Tensor",
)  # fmt: skip

PATIENCE = 300  # seconds

# Stops the progress of a run after 30 cells, so that no test depends on when it interrupts the run.
HELD = """
import time

cells = 0

def pytest_runtest_logreport():
    global cells
    cells += 1
    while cells > 30:
        time.sleep(0.01)
"""

# Stops one child with SIGSTOP in the middle of a cell, and writes the process ids of its worker and of the child.
STOPPED = """
import contextlib, os, pathlib, signal
from conformance.running.cell_runner import CellRunner

run, place, cells = CellRunner.run, pathlib.Path.cwd() / "stopped", 0

def stopping(*given, **others):
    global cells
    cells += 1
    if cells > 10:
        with contextlib.suppress(FileExistsError):
            place.symlink_to(f"{os.getppid()} {os.getpid()}")
            os.kill(os.getpid(), signal.SIGSTOP)
    return run(*given, **others)

CellRunner.run = stopping
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")


class Run:
    """A run in a directory of its own."""

    def __init__(self, directory: Path, *arguments: str, largest_file: int = 0, plugin: str = "") -> None:
        """Start the run. ``plugin``: the source of a pytest plugin, if any."""
        self.directory = directory
        if plugin:
            (directory / "of_the_run.py").write_text(plugin)
            arguments = ("-p", "of_the_run", *arguments)
        self._said = directory / "said"
        with self._said.open("wb") as output:
            self._process = forked_runs.start((*COMMAND, *arguments), directory, output)
        if largest_file:  # a file that cannot grow stands for a disk that is full
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (largest_file, largest_file))
        self.pid = self._process.pid

    def after(self, cells: int) -> Run:
        """Wait until the run has observed this many cells."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            if any(f.read_bytes().count(b"\n") > cells for f in self.directory.glob("results/*/observations.jsonl")):
                return self
            time.sleep(0.02)
        raise AssertionError(f"no {cells} cells were observed: {self.end()}")

    def in_the_middle_of_a_cell(self) -> tuple[int, int]:
        """Wait until a child is stopped. Return the process ids of its worker and of the child.

        The worker waits for the child, and has reported all cells before.
        """
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            if (found := self.directory / "stopped").is_symlink():
                worker, child = map(int, str(found.readlink()).split())
                return worker, child
            time.sleep(0.02)
        raise AssertionError(f"no child was stopped: {self.end()}")

    def end(self) -> tuple[int, str]:
        """Wait for the end of the run. Return its exit code and its output."""
        return self._process.wait(PATIENCE), self._said.read_text()


def lane(directory: Path) -> Path:
    (found,) = directory.glob("results/torch-*")
    return found


def summary(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lane(directory) / store.SUMMARY).read_text())
    return found


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the summary of a run that nothing interrupts."""
    directory = tmp_path_factory.mktemp("whole")
    assert Run(directory).end()[0] == Exit.OK
    return summary(directory)


def same(directory: Path, whole: dict[str, Any]) -> bool:
    found = summary(directory)
    return all(found[key] == whole[key] for key in ("collected", "by_status", "coverage", "cells", "cases"))


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_resume_completes_a_killed_run_without_repeating_cells(
    tmp_path: Path, whole: dict[str, Any], workers: tuple[str, ...]
) -> None:
    run = Run(tmp_path, *workers, plugin=HELD).after(20)
    children = descendants(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.end()
    assert children
    assert gone(children)
    before = [o.cell for o in store.read(lane(tmp_path)).observations]
    assert 20 <= len(before) < whole["collected"]
    code, said = Run(tmp_path, "--resume").end()  # with workers or without them
    assert code == Exit.OK
    assert f"resumed: {len(before)} of {whole['collected']} cells were observed by an earlier run" in said
    assert same(tmp_path, whole)
    after = [o.cell for o in store.read(lane(tmp_path)).observations]
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)


def gone(processes: list[int]) -> bool:
    """Return whether all processes end within 120 seconds."""
    deadline = time.monotonic() + 120
    while any(Path(f"/proc/{p}/exe").exists() for p in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_resume_of_nothing_says_that_it_begins_a_new_run(tmp_path: Path) -> None:
    code, said = Run(tmp_path, "--resume").end()
    assert code == Exit.OK, said
    assert "--resume: no earlier run in results/" in said


def test_resume_of_a_complete_run_keeps_its_results(tmp_path: Path) -> None:
    assert Run(tmp_path, "--tier", "smoke").end()[0] == Exit.OK
    before = summary(tmp_path)
    assert Run(tmp_path, "--tier", "smoke", "--resume").end()[0] == Exit.OK
    assert same(tmp_path, before)


# Interrupts the run while it closes.
LATE = """
import os, signal, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    os.kill(os.getpid(), signal.{by})

def pytest_terminal_summary():
    os.kill(os.getpid(), signal.{by})
"""


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM"])
def test_an_interruption_of_a_run_that_closes_changes_nothing(tmp_path: Path, whole: dict[str, Any], by: str) -> None:
    (tmp_path / "late.py").write_text(LATE.format(by=by))
    code, said = Run(tmp_path, "-p", "late").end()
    assert code == Exit.OK, said
    assert same(tmp_path, whole)


def test_a_run_with_other_options_neither_resumes_nor_destroys_a_run(tmp_path: Path) -> None:
    run = Run(tmp_path, plugin=HELD).after(20)
    os.kill(run.pid, signal.SIGINT)
    code, said = run.end()
    assert code == Exit.INTERRUPTED, said
    code, said = Run(tmp_path, "--resume", "--seed", "21").end()
    assert code == Exit.USAGE
    assert "seed 20 then, 21 now" in said
    code, said = Run(tmp_path, "--resume", "-k", "masked_fill.Scalar and float32-contiguous").end()
    assert code == Exit.USAGE
    assert "another selection: " in said
    assert "Traceback" not in said
    code, said = Run(tmp_path, "-k", "masked_fill.Scalar and float32-contiguous").end()
    assert code == Exit.OK
    assert "the observations of an interrupted run were moved to " in said
    kept = store.read(lane(tmp_path) / "observations.1.jsonl")
    assert sum(o.status is not Status.NOT_REACHED for o in kept.observations) >= 20


@pytest.mark.parametrize(("workers", "said"), [(("--jobs", "2"), "worker died: SIGKILL"), (("-n", "2"), "worker 'gw")])
def test_a_killed_worker_loses_one_cell_which_resume_runs(
    tmp_path: Path, whole: dict[str, Any], workers: tuple[str, ...], said: str
) -> None:
    run = Run(tmp_path, *workers, plugin=STOPPED)
    worker, child = run.in_the_middle_of_a_cell()
    os.kill(worker, signal.SIGKILL)
    assert gone([worker, child])
    code, output = run.end()
    assert code == Exit.SUITE_ERROR, output
    found = summary(tmp_path)
    assert found["collected"] == whole["collected"] == sum(found["by_status"].values())
    assert found["by_status"]["not_reached"] == 1
    (lost,) = (o for o in store.read(lane(tmp_path)).observations if o.status is Status.NOT_REACHED)
    assert lost.reason.startswith(f"the process that ran the cell died: {said}")
    assert Run(tmp_path, "--resume").end()[0] == Exit.OK
    assert same(tmp_path, whole)


def test_a_killed_child_is_a_crash_of_its_case_and_other_cells_run(tmp_path: Path, whole: dict[str, Any]) -> None:
    run = Run(tmp_path, plugin=STOPPED)
    _, child = run.in_the_middle_of_a_cell()
    os.kill(child, signal.SIGKILL)
    code, said = run.end()
    assert code == Exit.CELLS_FAILED, said
    (crash,) = (o for o in store.read(lane(tmp_path)).observations if o.status is Status.CRASH)
    assert crash.signal == "SIGKILL"
    assert crash.failures[0].death
    assert crash.failures[0].death.finding
    assert crash.failures[0].death.finding.kind == "flaky"
    counts = summary(tmp_path)["by_status"]
    assert counts["crash"] == 1
    assert counts["pass"] >= whole["by_status"]["pass"] - 1


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_run_that_fills_the_disk_says_so_and_can_be_resumed(
    tmp_path: Path, whole: dict[str, Any], workers: tuple[str, ...]
) -> None:
    run = Run(tmp_path, *workers, largest_file=10_000)
    code, said = run.end()
    assert code == Exit.RESULTS, said
    assert "cannot be written: File too large" in said
    assert "accounting:" in said
    assert "Traceback" not in said
    read = store.read(lane(tmp_path))
    assert len(read.observations) > 20
    assert not any("incomplete" in note for note in read.notes)
    assert Run(tmp_path, "--resume").end()[0] == Exit.OK
    assert same(tmp_path, whole)
