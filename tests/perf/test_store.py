"""Stored measured runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.perf import store
from conformance.perf.model import End
from conformance.results.store import StoreError, runs
from conformance.results.store.manifest import run_name
from tests.perf.times import BEGAN, MACHINE, SERIES, ended, record, rounds, timed
from tests.records import manifest

RECORDS = (record(of=rounds(1e-3)), ended(End.TIMEOUT, "erf"))
NAME = run_name(SERIES, BEGAN, "aaaaaa")


def test_a_run_is_read_as_it_was_stored(tmp_path: Path) -> None:
    path = timed(tmp_path, *RECORDS)
    read = store.find(tmp_path, "aaaaaa")
    assert (read.records, read.machine, read.settings) == (RECORDS, MACHINE, {"rounds": 5})
    assert store.load(path) == store.find(tmp_path, str(path)) == read
    assert json.loads((path / store.MANIFEST).read_text())["by_end"]["timeout"] == 1


def test_a_run_that_lost_a_case_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="1 records of 2 cases"):
        store.save(tmp_path, manifest(collected=2, run=NAME), MACHINE, {}, RECORDS[:1])
    assert store.names(tmp_path) == []


def test_a_run_of_times_is_no_run_of_cells(tmp_path: Path) -> None:
    path = timed(tmp_path, *RECORDS)
    assert runs.names(tmp_path) == []
    with pytest.raises(StoreError, match="not the manifest of a closed run"):
        runs.opened(path)


def test_an_unknown_run_lists_what_is_near(tmp_path: Path) -> None:
    timed(tmp_path, *RECORDS)
    with pytest.raises(StoreError, match=rf"no perf run '.*'.*near: {NAME[:20]}"):
        store.find(tmp_path, NAME.replace("malloc", "maloc"))
    with pytest.raises(StoreError, match="none"):
        store.find(tmp_path / "elsewhere", "x")


def test_a_part_of_two_names_is_refused(tmp_path: Path) -> None:
    timed(tmp_path, *RECORDS)
    timed(tmp_path, *RECORDS, token="bbbbbb")
    with pytest.raises(StoreError, match="matches 2 perf runs"):
        store.find(tmp_path, "demo")


def test_a_run_of_cells_has_no_times(tmp_path: Path) -> None:
    other = tmp_path / runs.RUNS / "20260101T000000Z-demo-torch2.8-malloc-release-cccccc"
    other.mkdir(parents=True)
    (other / store.MANIFEST).write_text('{"format": "op-conformance run", "version": 3}')
    with pytest.raises(StoreError, match="perf runs there: none"):
        store.find(tmp_path, "demo")  # many names of runs contain this
    with pytest.raises(StoreError, match="names a run of the cells, which has no times"):
        store.find(tmp_path, "cccccc")
    with pytest.raises(StoreError, match="not the manifest of a perf run"):
        store.find(tmp_path, str(other))


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = timed(tmp_path, *RECORDS) / store.RECORDS
    file.chmod(0o644)
    file.write_text(file.read_text().replace("timeout", "crash"))
    with pytest.raises(StoreError, match="hash differs"):
        store.find(tmp_path, "aaaaaa")


@pytest.mark.parametrize(("change", "told"), [({"version": 99}, "format version 99"), ({"machine": 1}, "machine|int")])
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, change: dict[str, object], told: str) -> None:
    file = timed(tmp_path, *RECORDS) / store.MANIFEST
    file.chmod(0o644)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(StoreError, match=told):
        store.find(tmp_path, "aaaaaa")
