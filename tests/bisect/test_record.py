"""The record of a search: its failure, reading it from a file, and equal questions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.bisect import record as record_
from conformance.bisect.record import PointRecord, Record, RunRecord, same, shortened
from conformance.bisect.search import Answer
from conformance.bisect.signature import Signature
from tests.bisect.worlds import CASE, question

WANTED = Signature("fail", findings=(("value", "result", "elements", "float32"),))
OTHER = Signature("crash", "SIGSEGV device")


def run(point: int, signature: Signature | None = None, judged: bool = True, case: str = CASE) -> RunRecord:
    return RunRecord(point, case, "narrow down", judged and not signature, judged, signature, "said", 1.5)


def test_the_failure_looked_for_is_the_first_judged_at_the_bad_end() -> None:
    kept = Record(question())
    kept.runs += [run(7, OTHER), run(15), run(15, judged=False), run(15, WANTED), run(15, OTHER)]
    assert kept.signature(CASE) == WANTED
    assert kept.signature("another") is None


def test_a_run_with_another_failure_has_the_answer_unknown() -> None:
    kept = Record(question())
    kept.runs += [run(15, WANTED), run(7, OTHER), run(3), run(9, WANTED), run(9, case="another")]
    assert kept.answers(CASE) == [(15, Answer.BAD), (7, Answer.UNKNOWN), (3, Answer.GOOD), (9, Answer.BAD)]


def test_a_saved_bisect_record_is_read_back(tmp_path: Path) -> None:
    kept = Record(question(skip=(4,)), seconds=12.5)
    kept.runs += [run(15, WANTED), run(0)]
    kept.places = {15: PointRecord("build 15", ("make it",), 3.0), 4: PointRecord(unusable="no wheel\nfor this")}
    kept.minimal[CASE] = "import torch\n"
    file = tmp_path / "deep" / "state.json"
    kept.save(file)
    kept.save(file)
    assert record_.load(file) == kept
    assert [f.name for f in file.parent.iterdir()] == ["state.json"]


def test_of_a_long_output_both_ends_are_kept() -> None:
    assert shortened("short") == "short"
    kept = shortened("a" * 5000 + "b" * 5000)
    assert kept.startswith("aaa")
    assert kept.endswith("bbb")
    assert len(kept) < 6100


def test_the_same_question_put_in_other_words_is_the_same() -> None:
    asked = question()
    assert same(asked, replace(asked, command="another"))
    for changed in (
        replace(asked, bad=14), replace(asked, threshold=0.9), replace(asked, corpus="sha256:2"),
        replace(asked, fixed=True), replace(asked, points=asked.points[1:]),
    ):  # fmt: skip
        assert not same(asked, changed)


def test_a_question_that_was_read_back_is_the_one_that_was_asked(tmp_path: Path) -> None:
    asked = question(good=None, rate=0.3, skip=(2, 3))
    Record(asked).save(tmp_path / "state.json")
    assert same(record_.load(tmp_path / "state.json").question, asked)


def test_a_state_of_another_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    Record(question()).save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 1}))
    with pytest.raises(record_.RecordError, match=r"state.json: format version 1, expected 2; continue with the"):
        record_.load(file)
