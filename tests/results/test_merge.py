"""Merging shards: the result of the complete run, and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.records import Observation
from conformance.results import resume, store
from conformance.results.ledger import Ledger
from conformance.results.shards import Split
from conformance.results.store import runs
from conformance.results.store.manifest import as_shard, run_name
from conformance.results.summary import Target
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
NIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
CELLS = (
    observed("cat", status=Status.UNSUPPORTED, compared=0, reason="no kernel"),
    observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL),
    observed("mm"),
    observed("mm", "float64-contiguous"),
    observed("neg", status=Status.CRASH, signal="SIGSEGV", compared=0),
)
TARGETS = [Target("cat", "native"), Target("mm", "fallback"), Target("_fft", "native", "takes a plan"), Target("x", "")]


def keep(results: Path, seen: tuple[Observation, ...], shard: str = "", whole: Any = CELLS, **given: Any) -> Path:
    """Store a run of these cells, or a shard of a run of ``whole``. Return its directory."""
    ids = [str(o.cell) for o in seen]
    second = int(shard.partition("/")[0] or 0)
    name = run_name(LANE, NIGHT + timedelta(seconds=second))
    defaults: dict[str, Any] = {"run": name, "collected": len(ids), "cells": resume.fingerprint(ids), "complete": False}
    told = manifest(**{**defaults, "arguments": ("--shard", shard, "-n", "2") if shard else ("-n", "2"), **given})
    told = as_shard(told, shard, "") if shard else told
    ledger = Ledger(results / LANE, told, [o.cell for o in seen], TARGETS, (), schemas={"hash": ("(Tensor)", "")})
    ledger.routes = {"mm": "native", "cat": "unsupported"}
    for o in seen:
        ledger.enter(o)
    split = Split(shard, len(whole), resume.fingerprint(str(o.cell) for o in whole)) if shard else None
    ledger.close(0.5, 2.0, split)
    return results / store.RUNS / told.run


def run(results: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ["merge", "--results", str(results), *arguments])


def summary(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    return {key: value for key, value in found.items() if key not in ("wall_s", "cpu_s", "collect_s")}


def merged(results: Path) -> runs.Closed:
    (name,) = runs.names(results)
    return runs.opened(results / runs.RUNS / name)


@pytest.mark.parametrize("cuts", [(0, 5), (0, 2, 5), (0, 1, 1, 5), (0, 1, 2, 3, 4, 5)])
def test_the_merged_run_is_what_the_whole_run_was(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    alone = runs.opened(keep(tmp_path / "alone", CELLS))
    count = len(cuts) - 1
    for i, (a, b) in enumerate(pairwise(cuts), start=1):
        if a < b:  # a shard without a cell leaves no run
            keep(tmp_path, CELLS[a:b], f"{i}/{count}")
    shown = run(tmp_path)
    assert shown.exit_code == Exit.CELLS_FAILED, shown.output
    assert "accounting: 5 collected = 2 pass + 1 fail + 0 error + 1 crash" in shown.output
    found = merged(tmp_path)
    assert summary(found.directory) == summary(alone.directory)
    assert runs.load(found) == runs.load(alone)
    assert found.manifest == replace(alone.manifest, run=found.name)
    assert found.by_status == alone.by_status


def test_shards_are_no_runs_until_they_are_merged_and_are_found_by_name(tmp_path: Path) -> None:
    one, two = keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    assert runs.names(tmp_path) == []
    assert runs.shards(tmp_path) == [one.name, two.name]
    assert runs.find(tmp_path, one.name).manifest.shard == "1/2"
    run(tmp_path, one.name, str(two))
    assert runs.find(tmp_path, LANE) == merged(tmp_path)


@pytest.mark.parametrize("command", [("summary",), ("report", "--text")])
def test_a_command_that_finds_only_shards_names_the_merge(command: tuple[str, ...], tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2")
    shown = CliRunner().invoke(commands, [*command, "--results", str(tmp_path)])
    assert shown.exit_code == Exit.INTERRUPTED
    assert f"`conformance merge --results {tmp_path}` joins the shards that are there" in shown.output


def test_merging_again_keeps_what_there_is(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    run(tmp_path)
    before = merged(tmp_path)
    shown = run(tmp_path)
    assert (shown.exit_code, merged(tmp_path)) == (Exit.OK, before)
    assert "already merged, of 2 shards" in shown.output


def test_a_shard_that_ran_again_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2", run=run_name(LANE, NIGHT - timedelta(days=1)))
    keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    assert "5 collected" in run(tmp_path).output


def test_merge_checks_known_failures_against_all_shards_together(tmp_path: Path) -> None:
    expected = tmp_path / "expected.toml"
    rule = '[[rule]]\nop = "{}"\nstatus = "{}"\nreason = "known"\n'
    known = [rule.format("neg", "crash"), rule.format("masked_fill_.Scalar", "fail")]
    expected.write_text("".join(known))
    keep(tmp_path, CELLS[:2], "1/2", complete=True), keep(tmp_path, CELLS[2:], "2/2", complete=True)
    assert run(tmp_path, "--expected", str(expected)).exit_code == Exit.OK
    assert merged(tmp_path).whole
    expected.write_text("".join([*known, rule.format("nosuch", "fail")]))
    keep(tmp_path / "b", CELLS[:2], "1/2", complete=True), keep(tmp_path / "b", CELLS[2:], "2/2", complete=True)
    shown = run(tmp_path / "b", "--expected", str(expected))
    assert (shown.exit_code, "matches no cell: rule op=nosuch" in shown.output) == (Exit.EXPECTATIONS, True)


def test_known_failures_that_cannot_be_read_leave_the_shards_to_be_merged(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    shown = run(tmp_path, "--expected", str(tmp_path / "nosuch.toml"))
    assert (shown.exit_code, "Traceback" in shown.output) == (Exit.INTERRUPTED, False)
    assert "nosuch.toml" in shown.output
    assert run(tmp_path).exit_code == Exit.CELLS_FAILED


def test_a_lane_that_cannot_be_merged_keeps_no_other_from_it(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    keep(tmp_path, CELLS[:2], "1/2", torch="2.9.0", run=run_name(LANE, NIGHT + timedelta(days=1)))
    shown = run(tmp_path)
    assert shown.exit_code == Exit.INTERRUPTED
    assert "shard 2/2 is missing" in shown.output
    assert merged(tmp_path).manifest.torch == "2.8.0"


def refused(results: Path, *names: str) -> str:
    shown = run(results, *names)
    assert shown.exit_code == Exit.INTERRUPTED
    assert runs.names(results) in ([], [LANE])
    assert all(line.startswith("Error: ") for line in shown.output.splitlines())
    return shown.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"torch": "2.9.0"}, "torch 2.8.0 and 2.9.0"),
        ({"corpus": "sha256:2"}, "corpus sha256:1 and sha256:2"),
        ({"backend_commit": "def"}, "backend_commit abc and def"),
        ({"seed": 1, "tier": "smoke"}, "tier full and smoke; seed 0 and 1"),
        ({"complete": True}, "complete False and True"),
    ],
)
def test_shards_of_different_runs_are_refused_and_what_differs_is_said(
    tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    one, two = keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[2:], "2/2", **given)
    assert said in refused(tmp_path, one.name, two.name)
    assert "is missing" in refused(tmp_path)  # each then counts as a part of another run


def test_merge_refuses_shards_of_another_selection_or_count(tmp_path: Path) -> None:
    one = keep(tmp_path, CELLS[:2], "1/2")
    other = keep(tmp_path, CELLS[2:], "2/2", whole=(*CELLS, observed("add")))
    assert "not of one run: other cells were split" in refused(tmp_path, one.name, other.name)
    third = keep(tmp_path, CELLS[2:], "3/3")
    assert "not of one run: split in 2 and in 3" in refused(tmp_path, one.name, third.name)


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/7"), keep(tmp_path, CELLS[3:], "3/7")
    assert "4 of 5 cells: shard 2/7, 4/7, 5/7 and 2 more is missing" in refused(tmp_path)


def test_a_cell_in_two_shards_is_named(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:3], "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    assert "mm[float32-contiguous] is in shard 1/2 and in shard 2/2" in refused(tmp_path)


def test_cells_that_no_shard_has_and_those_that_were_not_split_are_told(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2"), keep(tmp_path, CELLS[3:], "2/2")
    assert "4 of 5 cells: no shard has the others" in refused(tmp_path)
    for name in runs.shards(tmp_path):
        discard(tmp_path / runs.RUNS / name)
    keep(tmp_path, (observed("add"), CELLS[1]), "1/2"), keep(tmp_path, CELLS[2:], "2/2")
    assert "the 5 cells are not those that were split; are these shards of two different runs?" in refused(tmp_path)


def discard(run: Path) -> None:
    for file in run.iterdir():
        file.unlink()
    run.rmdir()


def test_a_shard_given_twice_and_a_run_that_is_none_are_refused(tmp_path: Path) -> None:
    one = keep(tmp_path, CELLS[:2], "1/2")
    again = keep(tmp_path, CELLS[:2], "1/2")
    assert "shard 1/2 is given twice" in refused(tmp_path, one.name, again.name)
    whole = keep(tmp_path / "b", CELLS)
    assert "is not a shard; expected runs of pytest with --shard I/N" in refused(tmp_path, str(whole))
    assert "no shards in" in refused(tmp_path / "c")


def test_a_shard_that_lacks_rows_or_has_others_is_refused(tmp_path: Path) -> None:
    keep(tmp_path, CELLS[:2], "1/2", collected=3), keep(tmp_path, CELLS[2:], "2/2")
    assert "2 of 3 cells observed; the shard is not complete" in refused(tmp_path)
    keep(tmp_path / "b", CELLS[:2], "1/2", cells="0"), keep(tmp_path / "b", CELLS[2:], "2/2")
    assert "its cells are not those that shard 1/2 had to run" in refused(tmp_path / "b")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-9], "by its manifest: the file was changed"),
        (lambda data: bytes(len(data)), "its hash differs"),
    ],
)
def test_a_shard_whose_rows_were_damaged_is_refused(tmp_path: Path, damage: Any, said: str) -> None:
    for file in _rows(keep(tmp_path, CELLS[:2], "1/2")):
        file.write_bytes(damage(file.read_bytes()))
    keep(tmp_path, CELLS[2:], "2/2")
    assert said in refused(tmp_path)


def _rows(run: Path) -> Iterator[Path]:
    (run / runs.PARQUET).chmod(0o644)
    yield run / runs.PARQUET
