"""Running a search: interruption, resumption, versions that cannot be built, other failures."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from conformance.bisect import record as record_
from conformance.bisect import report, session
from conformance.bisect.places import Place
from conformance.bisect.points import Point
from conformance.bisect.record import Record, RecordError
from conformance.bisect.search import Kind
from conformance.bisect.session import found
from tests.bisect.worlds import CASE, Probe, Workshop, question, search


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "bisect" / "state.json"


def test_the_first_failing_version_is_named(file: Path) -> None:
    kept, told = search(question(), Probe({CASE: 6}), file)
    assert (found(kept)[CASE].kind, found(kept)[CASE].first) == (Kind.CULPRIT, 6)
    assert any("signature of the failure: fail: value" in line for line in told)
    assert told[-1].endswith("done")


def test_a_point_keeps_the_number_that_the_report_gives_it(file: Path) -> None:
    kept, told = search(question(tries=30), Probe({CASE: 9}, rate=0.5), file)
    steps = json.loads(report.as_json(kept))["cases"][0]["steps"]
    named = {line.split("]")[0] + line.split("]")[1].partition(":")[0] for line in told if line.startswith("[point")}
    assert named == {f"[point {s['number']} {s['point']}" for s in steps}


def test_bisect_tries_both_ends_before_the_points_between_them(file: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), file)
    assert list(dict.fromkeys(r.point for r in kept.runs))[:2] == [15, 0]


def test_a_commit_that_cannot_be_built_is_skipped_and_is_not_bad(file: Path) -> None:
    workshop = Workshop(unusable=frozenset({5, 6, 7}))
    kept, told = search(question(), Probe({CASE: 6}), file, workshop)
    result = found(kept)[CASE]
    assert (result.kind, result.first, result.last, result.untested) == (Kind.RANGE, 5, 8, (5, 6, 7))
    assert any("skipped: building v7 failed" in line for line in told)


def test_a_point_with_another_failure_is_not_bad(file: Path) -> None:
    kept, told = search(question(), Probe({CASE: 12}, other=frozenset(range(3, 10))), file)
    assert found(kept)[CASE].first == 12
    assert any("unknown (crash SIGSEGV device)" in line for line in told)


def test_a_place_that_takes_long_is_said_to_be_made(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Workshop):
        def make(self, point: Point) -> Place:
            time.sleep(0.1)
            return super().make(point)

    monkeypatch.setattr(session, "PATIENCE", 0.0)
    _, told = search(question(4), Probe({CASE: 2}), file, Slow())
    assert told[0] == "[point 1] v3: installing or building"


def test_any_failure_is_taken_where_that_is_asked_for(file: Path) -> None:
    kept, _ = search(question(any_failure=True), Probe({CASE: 12}, other=frozenset(range(3, 16))), file)
    assert found(kept)[CASE].first == 3


def test_a_session_with_fixed_finds_the_commit_that_repaired_a_failure(file: Path) -> None:
    kept, _ = search(question(good=15, bad=0, fixed=True), Probe({CASE: 0}, mended=9), file)
    assert (found(kept)[CASE].first, found(kept)[CASE].last) == (8, 8)  # the last point that fails


def test_a_flaky_failure_is_repeated_until_it_is_sure(file: Path) -> None:
    kept, _ = search(question(tries=30), Probe({CASE: 9}, rate=0.5), file)
    result = found(kept)[CASE]
    assert (result.kind, result.first) == (Kind.CULPRIT, 9)
    assert result.confidence >= 0.95
    assert max(sum(r.point == p for r in kept.runs) for p in range(16)) > 3


def test_many_cases_share_their_points(file: Path) -> None:
    culprits = {f"case {i}": 4 + i for i in range(4)}
    workshop = Workshop()
    kept, _ = search(question(cases=tuple(culprits)), Probe(culprits), file, workshop)
    assert {case: r.first for case, r in found(kept).items()} == culprits
    assert len({r.point for r in kept.runs}) <= 9


def test_an_interrupted_search_goes_on_where_it_stopped(file: Path) -> None:
    whole, _ = search(question(), Probe({CASE: 6}), file)
    probe = Probe({CASE: 6}, interrupt_at=5)
    workshop = Workshop()
    with pytest.raises(KeyboardInterrupt):
        search(question(), probe, file, workshop)
    assert workshop.closed
    kept = record_.load(file)
    assert len(kept.runs) == 5
    kept, _ = search(kept.question, probe, file, record=kept)
    assert [(r.point, r.case) for r in kept.runs] == [(r.point, r.case) for r in whole.runs]


def test_the_state_is_read_back_as_it_was_written(file: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), file, Workshop(unusable=frozenset({7})))
    assert record_.load(file) == kept


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not the record of a search"),
        ("{", "is not the record of a search"),
        ('{"format": "op-conformance bisect", "version": 99}', "format version 99, expected 2"),
        ('{"format": "op-conformance bisect", "version": 2, "question": {}}', "cannot be read"),
    ],
)
def test_a_state_that_cannot_be_taken_up_is_refused(file: Path, text: str, message: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(RecordError, match=message):
        record_.load(file)


def test_the_next_place_is_made_while_a_case_runs(file: Path) -> None:
    workshop = Workshop()
    search(question(), Probe({CASE: 6}), file, workshop)
    asked = list(dict.fromkeys(workshop.made))
    kept, _ = search(question(), Probe({CASE: 6}), file)
    assert set(asked) >= {f"v{r.point}" for r in kept.runs}
    assert len(workshop.made) == len(asked)  # no place is made twice


def test_without_bounds_the_good_end_is_looked_for_backwards(file: Path) -> None:
    kept, _ = search(question(good=None), Probe({CASE: 11}), file)
    assert found(kept)[CASE].first == 11
    assert list(dict.fromkeys(r.point for r in kept.runs))[:4] == [15, 14, 13, 11]


def test_a_question_is_the_same_however_it_was_typed() -> None:
    assert record_.same(question(), question(command="conformance bisect --resume"))
    assert not record_.same(question(), question(threshold=0.9))


def test_a_record_without_runs_has_no_result() -> None:
    assert found(Record(question())) == {}
