"""CI jobs: the selected lanes, their shards, and the form for GitHub."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.lanes import jobs, matrix
from conformance.results import store
from conformance.results.store.manifest import run_name
from tests import sessions
from tests.records import manifest, observed

ROOT = Path(__file__).parents[2]
TEXT = """
backend = "demo"
project = "backend"
module = "demo"
[[torch]]
version = "2.8"
[[torch]]
version = "2.9"
[builds.release]
[builds.asan]
on_demand = true
[environments.malloc]
[environments.guard]
on_demand = true
"""
LANE = "demo-torch2.8-malloc-release"


@pytest.fixture
def lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with one matrix."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/demo.toml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["matrix", *arguments])


def planned(*arguments: str) -> list[tuple[str, str, float | None]]:
    shown = run("--format", "github", *arguments)
    assert shown.exit_code == 0, shown.output
    (line,) = shown.output.splitlines()
    return [(job["session"], job["shard"], job["minutes"]) for job in json.loads(line)["include"]]


def measure(results: Path, lane: str, minutes: float) -> None:
    """Store a whole run of a lane whose cells took ``minutes``."""
    cells = [observed("mm", wall_ns=int(6e10 * minutes)), observed("cat", wall_ns=0)]
    name = run_name(lane, datetime(2026, 1, 1, tzinfo=timezone.utc))
    with store.Writer(results / lane, manifest(lane=lane, run=name)) as writer:
        for cell in cells:
            writer.append(cell)
        writer.finish({"by_status": {}})


@pytest.mark.usefixtures("lanes")
def test_without_a_word_every_lane_is_a_job_but_those_on_demand() -> None:
    assert planned() == [("conformance-2.8(malloc)", "1/1", None), ("conformance-2.9(malloc)", "1/1", None)]


@pytest.mark.usefixtures("lanes")
def test_a_lane_that_is_named_runs_though_it_is_on_demand() -> None:
    assert planned("--lanes", "demo-torch2.8-malloc-asan,*2.9-guard-release") == [
        ("conformance-2.8(malloc, asan)", "1/1", None), ("conformance-2.9(guard)", "1/1", None),
    ]  # fmt: skip
    assert planned("--torch", "2.9") == [("conformance-2.9(malloc)", "1/1", None)]


def test_a_lane_is_split_by_the_time_of_its_last_run_or_of_a_similar_lane(lanes: Path) -> None:
    measure(lanes / "results", LANE, minutes=70)
    expected = [("conformance-2.8(malloc)", f"{i}/3", 11.7) for i in (1, 2, 3)]
    expected += [("conformance-2.9(malloc)", f"{i}/3", 11.7) for i in (1, 2, 3)]
    assert planned("--minutes", "15", "--workers", "2") == expected
    assert {shard for _, shard, _ in planned("--minutes", "100", "--workers", "1")} == {"1/1"}


def test_a_lane_not_measured_lasts_as_the_lanes_of_its_environment_do(lanes: Path) -> None:
    measure(lanes / "results", LANE, minutes=10)
    measure(lanes / "results", "demo-torch2.8-guard-release", minutes=40)
    found = planned("--lanes", "*-release", "--minutes", "20", "--workers", "1")
    assert [len([s for name, s, _ in found if name == f"conformance-2.9({e})"]) for e in ("malloc", "guard")] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--lanes", "demo-torch2.8-maloc-release"), f"unknown lane 'demo-torch2.8-maloc-release'; near: {LANE}"),
        (("--torch", "2.88"), "--torch: unknown torch version '2.88'; near: 2.8"),
        (("--minutes", "0"), "--minutes: expected a positive number of minutes, got 0"),
        (("--workers", "0"), "0 is not in the range"),
        (("--format", "githup"), "'githup' is not one of"),
        (("--lanes", "*asan", "--torch", "2.8,3"), "unknown torch version '3'"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("lanes")
def test_a_mistake_is_answered_with_what_is_near(arguments: tuple[str, ...], said: str) -> None:
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert said in shown.output


def test_more_jobs_than_a_workflow_takes_are_refused(lanes: Path) -> None:
    measure(lanes / "results", LANE, minutes=1000)
    few = ("--minutes", "1", "--workers", "1")
    shown = run(*few, "--format", "github")
    assert shown.exit_code == 2
    assert "2000 jobs, but GitHub allows 256; increase --minutes, or select fewer lanes" in shown.output
    assert len(json.loads(run(*few, "--format", "json").output)) == 2000


def test_where_there_is_no_matrix_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no matrix in matrices/" in run().output


@pytest.mark.usefixtures("lanes")
def test_the_table_is_for_people_and_json_for_programs() -> None:
    assert "conformance-2.8(malloc)" in run().output
    assert json.loads(run("--format", "json").output)[0]["lane"] == LANE


def test_every_session_of_a_job_is_one_that_nox_lists() -> None:
    everything = jobs.choose(matrix.load_all(ROOT / "matrices"), ["*"], [])
    assert {session for _, session in everything} <= sessions.listed()
