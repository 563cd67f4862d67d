"""Measured runs in the report's data."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.perf import store
from conformance.perf.model import End
from conformance.report import gather, perf
from tests.perf.times import ended, record, timed
from tests.report.results import nights


def test_a_run_s_rows_are_ranked_and_name_their_words(tmp_path: Path) -> None:
    timed(tmp_path, record("neg"), record("mm", device=9e-3), ended(End.CRASH, "abs"))
    (told,) = perf.runs([store.find(tmp_path, "aaaaaa")])
    assert json.loads(json.dumps(told)) == told
    assert [told["words"][row[0]] for row in told["rows"]] == ["mm", "neg"]
    assert (told["measured"], told["cases"]) == (2, 3)
    assert told["rows"][0][4:8] == [9e-3, 1e-3, 2e-3, 7e-3]
    assert told["best"] == {"bandwidth": 2e9, "flops": 1e10, "launch": 1e-6}


def test_the_latest_run_of_a_lane_that_can_be_read_is_shown(tmp_path: Path) -> None:
    nights(tmp_path)
    timed(tmp_path, record("neg"))
    damaged = timed(tmp_path, record("neg"), token="bbbbbb") / store.RECORDS
    damaged.chmod(0o644)
    damaged.write_text("")
    found = gather.gather(tmp_path, None, [], 30)
    assert [run.name[-6:] for run in found.perf] == ["aaaaaa"]
    assert [line for line in found.left_out if "hash differs" in line]


def test_a_report_without_measured_runs_has_none(tmp_path: Path) -> None:
    nights(tmp_path)
    assert gather.gather(tmp_path, None, [], 30).perf == []
