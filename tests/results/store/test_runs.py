"""Closed runs: stored whole or not at all, and never rewritten; damage is reported."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from conformance.explain import describe
from conformance.records import (
    Boundary,
    CaseFailure,
    Death,
    DeathFinding,
    Lacking,
    LeftOut,
    Mismatch,
    PlacedArgument,
    Repeats,
    Repetition,
    SanitizerReport,
)
from conformance.results import store
from conformance.results.store import cell_outcomes, parquet, runs
from conformance.results.store.manifest import as_shard, run_name
from conformance.vocabulary import Check, Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
NIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
CELLS = (
    observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL, checks=("value", "stride")),
    observed("mm"),
    observed("neg", status=Status.UNSUPPORTED, reason="no 'kernel'"),
)


def closed(results: Path, night: int = 0, lane: str = LANE, **given: Any) -> runs.Closed:
    ran = manifest(lane=lane, collected=len(CELLS), run=run_name(lane, NIGHT + timedelta(days=night)), **given)
    with store.Writer(results / lane, ran) as writer:
        for cell in CELLS:
            writer.append(cell)
        writer.finish({"by_status": {"pass": 1}})
    return runs.opened(results / store.RUNS / ran.run)


def test_a_closed_run_is_read_back_as_it_was_observed(tmp_path: Path) -> None:
    run = closed(tmp_path)
    assert runs.load(run) == CELLS
    assert (run.failing, run.ended, run.whole) == (1, True, True)
    assert store.read(run.directory).observations == CELLS
    assert store.read_summary(run.directory) == {"by_status": {"pass": 1}}


def test_every_figure_of_an_observation_has_a_column() -> None:
    assert set(parquet.COLUMNS) == set(CELLS[0].to_json())


def test_every_part_of_a_failure_comes_back(tmp_path: Path) -> None:
    finding = DeathFinding("ordered", (0, 5), (2, 2), 7, "a case", (5, 5), LeftOut.ORDER, "flaky")
    report = SanitizerReport("AddressSanitizer", "heap-buffer-overflow", size=4, stack=("a.cpp:1 f",))
    facts = {"kind": "elements", "device": "nan", "cpu": -0.0, "index": [1, 2], "why": "it's\n\u2713", "none": None}
    failure = CaseFailure(
        "case", (Mismatch(Check.VALUE, "self", facts),),
        (PlacedArgument("self", "float32", "conj", (2,), (1,), 1, 3, "conj", "a", "b"), PlacedArgument("", text="2")),
        Death("SIGSEGV", 1.5, "device", finding, report, "log"), ("clone", "copy_"), "Traceback",
        boundary=Boundary(1025, 1024, 4096, 32, True, (1056,)),
        repetition=Repetition(Repeats.ORDERED, (0, 5), ("a", "b"), (5, 5), LeftOut.ORDER, "flaky"),
    )  # fmt: skip
    cell = replace(CELLS[0], failures=(failure,), lacking=(Lacking("_foo.out", 3), Lacking("arange", 1)))
    with store.Writer(tmp_path / LANE, ran := manifest(collected=1)) as writer:
        writer.append(cell)
        writer.finish({})
    assert runs.load(runs.opened(tmp_path / store.RUNS / ran.run)) == (cell,)


def as_version_2(run: runs.Closed) -> runs.Closed:
    """Rewrite a closed run in format version 2, with the text of a message in place of facts."""
    texts = "[{'case': f.case, 'check': f.check, 'message': 'what differs', 'figures': '{}'} FOR f IN failures]"
    file = run.directory / runs.PARQUET
    file.chmod(0o644)
    with parquet.database() as db:
        newer, table = "partial, lacking", parquet.quoted(file)
        rows = f"SELECT * EXCLUDE ({newer}) REPLACE ({texts} AS failures) FROM read_parquet({table})"
        db.execute(f"CREATE TABLE old AS {rows}")
        db.execute(f"COPY old TO {parquet.quoted(file)} (FORMAT parquet)")
    data = file.read_bytes()
    manifest_ = run.directory / runs.MANIFEST
    manifest_.chmod(0o644)
    changed = {"version": 2, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest_.write_text(json.dumps(json.loads(manifest_.read_text()) | changed))
    return runs.opened(run.directory)


def test_a_run_of_the_version_before_is_read_with_its_messages(tmp_path: Path) -> None:
    (read, *_) = runs.load(as_version_2(closed(tmp_path)))
    assert (read.failures[0].check, read.failures[0].older) == ("value", "what differs")
    assert read.kind == CELLS[0].kind
    assert describe.failure(read.failures[0], read.cell, read.route, "demo") == "what differs"


def test_runs_of_two_versions_are_compared(tmp_path: Path) -> None:
    old, new = as_version_2(closed(tmp_path / "old")), closed(tmp_path / "new")
    assert cell_outcomes.differing(old, new) == cell_outcomes.differing(new, old) == []
    assert cell_outcomes.unlike([old, new]) == []


def test_shards_of_the_version_before_are_not_merged(tmp_path: Path) -> None:
    old = as_version_2(closed(tmp_path))
    with pytest.raises(store.StoreError, match="format version 2, but merging needs 3"):
        runs.join(tmp_path, manifest(), [old], {})


def test_a_closed_run_is_never_written_again(tmp_path: Path) -> None:
    run = closed(tmp_path)
    before = {f.name: f.read_bytes() for f in run.directory.iterdir()}
    journal = tmp_path / LANE / store.OBSERVATIONS
    runs.close(tmp_path, replace(run.manifest, seed=99), journal, {"pass": 1}, None)
    assert {f.name: f.read_bytes() for f in run.directory.iterdir()} == before
    assert not [f for f in run.directory.iterdir() if f.stat().st_mode & 0o222]
    assert [d.name for d in run.directory.parent.iterdir()] == [run.name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("format"), "is not the manifest of a closed run; was this file written by another tool?"),
        (lambda d: d.update(version=99), "format version 99, this suite reads 2 and 3; read it with the suite"),
        (lambda d: d.update(version=1), "format version 1, this suite reads 2 and 3; read it with the suite"),
        (lambda d: d.pop("sha256"), "sha256 is None; expected the manifest of a closed run"),
        (lambda d: d.update(by_status=None), "by_status is None; expected the manifest of a closed run"),
        (lambda d: d.update(by_status={"odd": 3}), "has 3 of the status 'odd'; was it written by a later suite?"),
        (lambda d: d.update(collected="3"), "collected is '3'; expected a value of type int"),
        (lambda d: d.pop("seed"), "fields differ from a manifest's: seed"),
        (lambda d: d.update(bytes=1), "bytes, expected 1 by its manifest: the file was changed"),
        (lambda d: d.update(sha256="0"), "its hash differs from its manifest: the file was changed"),
    ],
)
def test_a_manifest_that_is_not_ours_or_of_other_rows_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    run = closed(tmp_path)
    file = run.directory / runs.MANIFEST
    record = json.loads(file.read_text())
    change(record)
    file.chmod(0o644)
    file.write_text(json.dumps(record))
    with pytest.raises(store.StoreError) as e:
        runs.load(runs.opened(run.directory))
    assert str(e.value).startswith(str(run.directory))
    assert message in str(e.value)


def test_rows_that_are_cut_off_missing_or_flipped_are_told_apart(tmp_path: Path) -> None:
    run = closed(tmp_path)
    file = run.directory / runs.PARQUET
    file.chmod(0o644)
    data = file.read_bytes()
    file.write_bytes(data[:-10])
    with pytest.raises(store.StoreError, match="by its manifest: the file was changed"):
        runs.load(run)
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    with pytest.raises(store.StoreError, match="its hash differs from its manifest"):
        runs.load(run)
    file.unlink()
    with pytest.raises(store.StoreError, match="No such file"):
        runs.load(run)


def test_rows_that_were_damaged_are_not_joined(tmp_path: Path) -> None:
    one, two = closed(tmp_path, 1), closed(tmp_path, 2)
    (two.directory / runs.PARQUET).chmod(0o644)
    (two.directory / runs.PARQUET).write_bytes(bytes(two.bytes))
    with pytest.raises(store.StoreError, match="its hash differs from its manifest"):
        runs.join(tmp_path / "joined", replace(one.manifest, run="x"), [one, two], {})
    assert not (tmp_path / "joined").exists()


def test_without_duckdb_the_error_names_the_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(store.StoreError, match=r"duckdb is not installed.*pip install duckdb"):
        closed(tmp_path)
    assert store.read(tmp_path / LANE).observations == CELLS  # the journal does not need duckdb
    assert list((tmp_path / store.RUNS).iterdir()) == []


def test_a_run_is_found_by_name_by_part_and_by_lane(tmp_path: Path) -> None:
    first, second = closed(tmp_path, 1), closed(tmp_path, 2)
    closed(tmp_path, 3, "demo-torch2.9-malloc-release")
    assert runs.find(tmp_path, first.name) == first
    assert runs.find(tmp_path, "20260102") == first
    assert runs.find(tmp_path, str(second.directory)) == second
    assert (runs.find(tmp_path, LANE), runs.find(tmp_path, f"{LANE}~1")) == (second, first)
    assert runs.names(tmp_path, LANE) == [first.name, second.name]
    assert runs.every_series(tmp_path) == [LANE, "demo-torch2.9-malloc-release"]


def test_a_run_of_some_cells_does_not_stand_for_its_lane(tmp_path: Path) -> None:
    whole, smoke = closed(tmp_path, 1), closed(tmp_path, 2, f"{LANE}+smoke")
    part = closed(tmp_path, 3, f"{LANE}+part")
    other = closed(tmp_path, 4, "demo-torch2.9-malloc-release+part")
    assert runs.find(tmp_path, LANE) == whole
    assert runs.find(tmp_path, f"{LANE}+part") == part
    assert list(runs.shown_series(tmp_path)) == [LANE, smoke.manifest.series, other.manifest.series]
    assert runs.measured(tmp_path, f"{LANE}+smoke") == smoke
    assert runs.measured(tmp_path, f"{LANE}+full") == whole


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (f"{LANE}~2", "has 2 closed runs; the oldest is ~1"),
        ("demo-torch2.8-maloc-release", f"near: {LANE}"),
        ("2026010", "matches 2 runs, for example 20260103T"),
        ("nothing", f"lanes with runs: {LANE}"),
    ],
)
def test_a_run_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path, asked: str, message: str) -> None:
    closed(tmp_path, 1)
    closed(tmp_path, 2)
    with pytest.raises(store.StoreError) as e:
        runs.find(tmp_path, asked)
    assert message in str(e.value)


def test_all_but_the_latest_runs_of_each_lane_are_forgotten(tmp_path: Path) -> None:
    other = "demo-torch2.13-malloc-release"
    old = [closed(tmp_path, night).name for night in range(4)]
    young = [closed(tmp_path, night, lane=other).name for night in range(2)]
    assert runs.forget(tmp_path, keep=2) == old[:2]
    assert runs.names(tmp_path) == sorted([*old[2:], *young])
    assert runs.forget(tmp_path, keep=2) == []


def test_a_run_that_is_deleted_in_part_is_no_run_and_goes_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [closed(tmp_path, night).name for night in range(4)]

    def stopped(directory: Path) -> None:
        (directory / runs.MANIFEST).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(shutil, "rmtree", stopped)
        with pytest.raises(KeyboardInterrupt):
            runs.forget(tmp_path, keep=2)
    assert runs.names(tmp_path) == names[2:]
    assert runs.forget(tmp_path, keep=2) == []
    assert sorted(file.name for file in (tmp_path / runs.RUNS).iterdir()) == names[2:]


def test_the_latest_whole_run_is_kept_however_old_it_is(tmp_path: Path) -> None:
    names = [closed(tmp_path, night, complete=night < 2).name for night in range(5)]
    assert runs.forget(tmp_path, keep=2) == [names[0], names[2]]


def test_shards_are_forgotten_with_the_runs_of_their_time(tmp_path: Path) -> None:
    shards = []
    for night in range(3):
        closed(tmp_path, night)
        part = as_shard(manifest(lane=LANE, run=run_name(LANE, NIGHT + timedelta(days=night, hours=1))), "1/2", "")
        with store.Writer(tmp_path / LANE, part) as writer:
            writer.finish({})
        shards.append(part.run)
    runs.forget(tmp_path, keep=2)
    assert runs.shards(tmp_path) == shards[1:]


def test_the_shards_of_the_oldest_run_kept_are_kept_with_it(tmp_path: Path) -> None:
    """The names of the run and its shards have the same second, and random tokens whose order means nothing."""
    for token in ("000000", "ffffff"):
        part = as_shard(manifest(lane=LANE, run=run_name(LANE, NIGHT, token)), "1/1", "")
        with store.Writer(tmp_path / LANE, part) as writer:
            writer.finish({})
    whole = manifest(lane=LANE, run=run_name(LANE, NIGHT, "888888"), complete=True)
    with store.Writer(tmp_path / LANE, whole) as writer:
        writer.finish({})
    assert runs.forget(tmp_path, keep=2) == []


def test_the_runs_of_each_series_are_listed_once_and_in_order(tmp_path: Path) -> None:
    for number, lane in enumerate(("demo-torch2.8-malloc-release", "demo-torch2.8-malloc-release+smoke") * 2):
        (tmp_path / store.RUNS / run_name(lane, NIGHT + timedelta(days=4 - number))).mkdir(parents=True)
    (tmp_path / store.RUNS / "notes").mkdir()
    (tmp_path / store.RUNS / run_name("a-file", NIGHT)).touch()
    listed = runs.by_series(tmp_path)
    assert list(listed) == ["demo-torch2.8-malloc-release", "demo-torch2.8-malloc-release+smoke"]
    assert listed == {series: runs.names(tmp_path, series) for series in listed}
    assert [len(names) for names in listed.values()] == [2, 2]


def test_a_run_found_by_its_whole_name_reads_no_list_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = closed(tmp_path)
    monkeypatch.setattr(runs, "listed", lambda _: pytest.fail("the runs were listed"))
    assert runs.find(tmp_path, kept.name) == kept
