"""The journal of a run: reading returns what was written, and damage is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.records import CaseFailure
from conformance.results import store
from conformance.results.store.manifest import run_name
from conformance.vocabulary import Status
from tests.records import manifest, observed

RAN = manifest()
CELLS = (observed("mm"), observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL, checks=("value", "stride")))


def written(directory: Path, ran: store.Manifest = RAN) -> Path:
    with store.Writer(directory, ran) as writer:
        for observation in CELLS:
            writer.append(observation)
    return directory / store.OBSERVATIONS


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written(tmp_path / "lane")
    assert store.read(tmp_path / "lane") == store.Run(RAN, CELLS)


def test_observations_are_on_disk_as_they_happen(tmp_path: Path) -> None:
    with store.Writer(tmp_path, manifest()) as writer:
        writer.append(CELLS[0])
        run = store.read(tmp_path)
    assert run.observations == CELLS[:1]
    assert "1 of 2 cells observed; the run did not end" in run.notes[0]


def test_a_last_line_that_is_cut_off_is_left_out_with_a_note(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text()[:-20])
    run = store.read(tmp_path)
    assert run.observations == CELLS[:1]
    assert "the last line is incomplete" in run.notes[0]


def test_a_new_run_takes_the_place_of_the_earlier_one_and_of_its_summary(tmp_path: Path) -> None:
    with store.Writer(tmp_path, manifest()) as writer:
        writer.append(CELLS[0])
        writer.finish({"by_status": {}})
    with store.Writer(tmp_path, manifest(seed=1)):
        pass
    assert not (tmp_path / store.SUMMARY).exists()
    assert store.read(tmp_path).manifest.seed == 1


def test_a_summary_is_written_whole_and_read_back(tmp_path: Path) -> None:
    path = store.Writer(tmp_path, manifest()).finish({"by_status": {"pass": 1}})
    assert store.read_summary(tmp_path) == store.read_summary(path) == {"by_status": {"pass": 1}}
    assert [p.name for p in sorted(tmp_path.iterdir())] == [store.OBSERVATIONS, store.SUMMARY]


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (0, "{}", "line 1 is not the manifest of a run; was this file written by another tool?"),
        (0, "hello", "line 1: not JSON"),
        (0, "[1]", "line 1: expected a JSON object, got list"),
        (1, "{}", "line 2: not an observation: KeyError: 'family'"),
        (1, "{", "line 2: not JSON"),
    ],
)
def test_a_line_that_is_not_ours_is_an_error_with_its_place(tmp_path: Path, line: int, text: str, message: str) -> None:
    file = written(tmp_path)
    lines = file.read_text().split("\n")
    lines[line] = text
    file.write_text("\n".join(lines))
    with pytest.raises(store.StoreError) as e:
        store.read(tmp_path)
    assert str(e.value).startswith(str(file))
    assert message in str(e.value)


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    file = written(tmp_path)
    head, _, rest = file.read_text().partition("\n")
    file.write_text(json.dumps({**json.loads(head), "version": 99}) + "\n" + rest)
    with pytest.raises(store.StoreError, match="format version 99, this suite reads 2 and 3"):
        store.read(tmp_path)


def test_a_journal_of_the_version_before_is_read_with_its_messages(tmp_path: Path) -> None:
    file = written(tmp_path)
    head, passing, failing, _ = file.read_text().split("\n")
    old = json.loads(failing)
    old["failures"] = [{"case": "c", "check": "stride", "message": "what differs", "figures": {"cpu": 1}}]
    lines = (json.dumps({**json.loads(head), "version": 2}), passing, json.dumps(old), "")
    file.write_text("\n".join(lines))
    (failure,) = store.read(tmp_path).observations[1].failures
    assert failure == CaseFailure("c", older="what differs", older_check="stride")
    assert CaseFailure.from_json(failure.to_json()) == failure  # as a resumed run writes it


def test_an_older_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = written(tmp_path)
    head, _, rest = file.read_text().partition("\n")
    file.write_text(json.dumps({**json.loads(head), "version": 1}) + "\n" + rest)
    with pytest.raises(
        store.StoreError, match="version 1, this suite reads 2 and 3; read it with the suite that wrote it"
    ):
        store.read(tmp_path)


def test_an_empty_file_and_a_missing_one_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / store.OBSERVATIONS).touch()
    with pytest.raises(store.StoreError, match="is empty; expected the manifest"):
        store.read(tmp_path)
    with pytest.raises(store.StoreError, match="no such file"):
        store.read(tmp_path / "nowhere")


def test_a_run_is_found_by_its_lane_or_the_lanes_there_are_listed(tmp_path: Path) -> None:
    written(tmp_path / "demo-torch2.8-malloc-release")
    assert store.find(tmp_path, "demo-torch2.8-malloc-release") == tmp_path / "demo-torch2.8-malloc-release"
    with pytest.raises(store.StoreError, match="no closed run 'x' in "):
        store.find(tmp_path, "x")


def test_a_shard_in_a_lane_s_directory_is_not_taken_for_the_lane_s_run(tmp_path: Path) -> None:
    lane = "demo-torch2.8-malloc-release"
    with store.Writer(tmp_path / lane, manifest(lane=lane, run=run_name(lane))) as writer:
        writer.finish({"by_status": {}})
    assert store.find(tmp_path, lane) == tmp_path / lane
    (closed,) = (tmp_path / store.RUNS).iterdir()
    written(tmp_path / lane, manifest(lane=lane, shard="1/2"))
    assert store.find(tmp_path, lane) == closed
