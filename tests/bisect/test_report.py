"""The report of a search as Markdown and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.bisect import report, session
from conformance.bisect.places import Place
from conformance.bisect.points import Point
from conformance.bisect.search import Kind
from conformance.bisect.session import found
from conformance.bisect.signature import ProbeOutcome
from tests.bisect.worlds import CASE, Probe, Workshop, question, search


def test_the_text_holds_all_that_an_issue_needs(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), tmp_path / "s", Workshop(unusable=frozenset({9})))
    text = report.markdown(kept)
    assert "**last good v5 (demo==5), first bad v6 (demo==6), confidence" in text
    assert "The failure: `fail: value`" in text
    assert f"{CASE} is equal at v5" in text
    assert f"{CASE} differs at v6" in text
    assert "make v6" in text
    assert f"# shows {CASE} at v15" in text
    assert f"conformance bisect '{CASE}'" in text


def test_every_point_tried_is_a_row_with_its_runs(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 10}), tmp_path / "s", Workshop(unusable=frozenset({7})))
    rows = [line for line in report.markdown(kept).splitlines() if line.startswith("| ") and "demo==" in line]
    assert len(rows) == len({r.point for r in kept.runs}) + 1
    assert any("v15 (demo==15) | 4 / 4 | bad" in row for row in rows)
    assert any("v7 (demo==7) | 0 / 0 | skipped: building v7 failed:" in row for row in rows)
    assert "v7 (demo==7)" in rows[2]  # in the order of the trials: after both ends


def test_a_case_has_no_row_for_a_point_that_was_tried_for_another(tmp_path: Path) -> None:
    other = CASE.replace("neg", "abs")
    kept, _ = search(question(cases=(CASE, other)), Probe({CASE: 3, other: 12}), tmp_path / "s")
    cases = json.loads(report.as_json(kept))["cases"]
    for case, facts in zip((CASE, other), cases, strict=True):
        tried = dict.fromkeys(kept.question.points[r.point].name for r in kept.runs if r.case == case)
        assert [step["point"] for step in facts["steps"]] == list(tried)
        assert len(tried) < len({r.point for r in kept.runs})
        assert "unknown" not in {step["answer"] for step in facts["steps"]}
    rows = [line for line in report.markdown(kept).splitlines() if line.startswith("| ") and "demo==" in line]
    assert len(rows) == sum(len(facts["steps"]) for facts in cases)


def test_a_run_that_says_nothing_but_a_blank_line_has_its_row(tmp_path: Path) -> None:
    class Silent(Probe):
        def run(self, place: Place, case: str) -> ProbeOutcome:
            return (
                ProbeOutcome(False, None, False, "\n", 0.1)
                if str(place.directory) == "v7"
                else super().run(place, case)
            )

    kept, _ = search(question(), Silent({CASE: 10}), tmp_path / "s")
    (row,) = (line for line in report.markdown(kept).splitlines() if line.startswith("| ") and "v7" in line)
    assert "| 0 / 0 | unknown |" in row


def test_the_time_of_a_skipped_point_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(Workshop):
        def make(self, point: Point) -> Place:
            clock[0] += 90.06 if point.name == "v7" else 0
            return super().make(point)

    kept, _ = search(question(), Probe({CASE: 10}), tmp_path / "s", Slow(unusable=frozenset({7})))
    (skipped,) = (s for s in json.loads(report.as_json(kept))["cases"][0]["steps"] if s["answer"] == "skipped")
    assert (skipped["point"], skipped["seconds"]) == ("v7", 90.1)


def test_a_range_says_what_could_not_be_tested(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), tmp_path / "s", Workshop(unusable=frozenset({5, 6})))
    assert "no single culprit: last good v4 (demo==4), first bad v7" in report.markdown(kept)
    assert "v5, v6 could not be tested" in report.markdown(kept)


def test_two_sides_of_the_same_build_are_said_to_be(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), tmp_path / "s", Workshop(same=frozenset({6})))
    assert "both are the same build" in report.markdown(kept)
    assert json.loads(report.as_json(kept))["cases"][0]["same_build"] is True


def test_a_repair_names_the_last_bad_and_the_first_good(tmp_path: Path) -> None:
    kept, _ = search(question(good=15, bad=0, fixed=True), Probe({CASE: 0}, mended=9), tmp_path / "s")
    assert "**last bad v8 (demo==8), first good v9 (demo==9)" in report.markdown(kept)


def test_ends_that_do_not_hold_are_named(tmp_path: Path) -> None:
    passing, _ = search(question(), Probe({CASE: 99}), tmp_path / "s")
    assert found(passing)[CASE].kind is Kind.NOT_BAD
    assert "no culprit: the bad end passes (v15 (demo==15))" in report.markdown(passing)
    failing, _ = search(question(), Probe({CASE: 0}), tmp_path / "s")
    assert "no culprit: the good end fails as well (v0 (demo==0))" in report.markdown(failing)
    always, _ = search(question(good=None), Probe({CASE: 0}), tmp_path / "s")
    assert "no culprit: the oldest version that can be tested fails as well" in report.markdown(always)


def test_the_facts_are_there_for_a_page(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), tmp_path / "s")
    facts = json.loads(report.as_json(kept))
    case = facts["cases"][0]
    assert (case["kind"], case["before"], case["after"], case["first"]) == ("culprit", "v5", "v6", "v6")
    assert (facts["points_probed"], facts["runs"]) == (len({r.point for r in kept.runs}), len(kept.runs))
    assert [s["number"] for s in case["steps"]] == list(range(1, facts["points_probed"] + 1))


def test_output_that_holds_a_fence_does_not_end_it(tmp_path: Path) -> None:
    kept, _ = search(question(), Probe({CASE: 6}), tmp_path / "s")
    kept.minimal[CASE] = "print('''\n```\n''')\n"
    assert "````python\nprint('''\n```\n''')\n````" in report.markdown(kept)
