"""Shards of real runs: the merged run equals the complete run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import conformance.running.cell_runner  # noqa: F401  # loads torch, so that runs within this process do not
from conformance.results import store
from conformance.results.store import runs
from conformance.results.store.manifest import run_name
from conformance.support.exit_codes import Exit
from tests import forked_runs

pytest_plugins = ["pytester"]

SELECTION = ("-k", "masked_fill", "--tier", "smoke")


FAMILY = ("--pyargs", "conformance.ops.masking", "--backend", "torch:cpu", "-q", "-p", "no:cacheprovider")
# Several runs in one process, so that torch is loaded once. The interpreter reports what leaked when it ends, which a
# forked process does not do.
RUNS = """
import json, sys
import pytest
for arguments in json.loads(sys.argv[1]):
    print("ENDED", int(pytest.main(arguments)), flush=True)
"""


def run_each(directory: Path, runs: list[tuple[str, ...]], selection: tuple[str, ...] = SELECTION) -> list[int]:
    """Run one family several times on CPU, one run after the other. Return the exit codes."""
    given = json.dumps([[*FAMILY, *selection, *arguments] for arguments in runs])
    command = (sys.executable, "-c", RUNS, given)
    environment = {**os.environ, **forked_runs.WITHOUT_HYPOTHESIS}
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=environment)
    assert "leaked" not in done.stderr
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("ENDED ")]


def run(directory: Path, *arguments: str, selection: tuple[str, ...] = SELECTION) -> tuple[int, str]:
    """Run the family once. Return the exit code and the output."""
    done = forked_runs.run((sys.executable, "-m", "pytest", *FAMILY, *selection, *arguments), directory)
    return done.returncode, done.stdout + done.stderr


def merge(directory: Path) -> tuple[int, str]:
    done = forked_runs.run((sys.executable, "-m", "conformance.cli", "merge"), directory)
    return done.returncode, done.stdout + done.stderr


def result(directory: Path) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Return the summary and the outcomes of the one run that is not a shard, without timings."""
    (name,) = runs.names(directory / "results")
    found = runs.opened(directory / "results" / store.RUNS / name)
    rows = [(str(o.cell), o.status, o.cases, o.compared, o.failures) for o in runs.load(found)]
    told = json.loads((found.directory / store.SUMMARY).read_text())
    timed = ("wall_s", "cpu_s", "collect_s", "raw_call_share")
    return {key: value for key, value in told.items() if key not in timed}, rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    code, said = run(directory)
    assert code == Exit.OK, said
    return directory


@pytest.mark.parametrize(
    ("count", "workers", "measured"), [(1, (), True), (2, ("-n", "2"), False), (3, (), True), (7, (), False)]
)
def test_merged_shards_equal_the_whole_run(
    tmp_path: Path, whole: Path, count: int, workers: tuple[str, ...], measured: bool
) -> None:
    (name,) = runs.names(whole / "results")
    by = ("--shard-by", str(whole / "results" / store.RUNS / name)) if measured else ()
    shards = [("--shard", f"{i}/{count}", *by, *workers) for i in range(1, count + 1)]
    assert run_each(tmp_path, shards) == [Exit.OK] * count
    code, said = merge(tmp_path)
    assert code == Exit.OK, said
    assert result(tmp_path) == result(whole)
    told = {runs.find(tmp_path / "results", name).manifest.split_by for name in runs.shards(tmp_path / "results")}
    assert told == {name if measured else ""}


def test_a_shard_names_its_part_of_the_cells(tmp_path: Path, whole: Path) -> None:
    code, said = run(whole, "--shard", "1/2", "--results", str(tmp_path))  # no earlier run there: split by cases
    assert code == Exit.OK
    summary, _ = result(whole)
    assert f"shard 1/2 of {summary['collected']} cells: " in said
    (shard,) = runs.shards(tmp_path)
    assert runs.find(tmp_path, shard).manifest.split_by == ""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_shard_without_cells_passes_and_the_others_make_the_run(tmp_path: Path, workers: tuple[str, ...]) -> None:
    one = ("-k", "masked_fill.Scalar and float32-contiguous")
    shards = [("--shard", f"{i}/3", *workers) for i in (1, 2, 3)]
    assert run_each(tmp_path, shards, one) == [Exit.OK] * 3
    assert len(runs.shards(tmp_path / "results")) == 2
    assert merge(tmp_path)[0] == Exit.OK
    assert result(tmp_path)[0]["collected"] == 2


def test_a_selection_without_cells_to_split_fails(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--shard", "1/2", "-n", "2", selection=("-k", "maskd_fill_"))
    assert code == Exit.NONE_SELECTED
    assert "ERROR: no cell is selected by" in said


def test_an_interrupted_shard_is_resumed_only_by_the_same_shard(tmp_path: Path) -> None:
    run(tmp_path, "--shard", "1/2", "--maxfail=1", "--backend", "torch:meta")  # leaves every cell not reached
    code, said = run(tmp_path, "--shard", "2/2", "--resume", "--backend", "torch:meta")
    assert code == Exit.USAGE
    assert "shard 1/2 then, 2/2 now" in said
    assert merge(tmp_path)[0] == Exit.INTERRUPTED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--shard", "0/3"), "--shard: '0/3' is not a shard; expected I/N with 1 <= I <= N <= 9999, for example 2/4"),
        (("--shard", "4/3"), "--shard: '4/3' is not a shard"),
        (("--shard", "x"), "--shard: 'x' is not a shard"),
        (("--shard-by", "night"), "--shard-by: needs --shard I/N, which says which part of the run to take"),
        (("--shard", "1/2", "--shard-by", "night"), "--shard-by: no closed run 'night' in results/runs/"),
    ],
)
def test_a_wrong_shard_option_is_one_line(pytester: pytest.Pytester, given: tuple[str, ...], said: str) -> None:
    shown = pytester.runpytest_inprocess(*FAMILY, *SELECTION, *given)
    assert shown.ret == Exit.USAGE
    assert said in shown.stderr.str()
    assert "Traceback" not in shown.stderr.str() + shown.stdout.str()


def test_an_earlier_run_that_cannot_be_read_is_one_line(pytester: pytest.Pytester) -> None:
    earlier = pytester.mkdir("results") / store.RUNS / run_name("mine+part")
    earlier.mkdir(parents=True)
    (earlier / "manifest.json").write_text('{"format": "op-conformance run", "version": 99}')
    shown = pytester.runpytest_inprocess(*FAMILY, *SELECTION, "--lane-name", "mine", "--shard", "1/2")
    assert shown.ret == Exit.USAGE
    assert "--shard: " in shown.stderr.str()
    assert "format version 99, this suite reads" in shown.stderr.str()
    assert "Traceback" not in shown.stderr.str() + shown.stdout.str()
