"""The site's files: their content, in which texts of results stay text, and foreign files, which stay untouched."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.records import CaseFailure, Death, DeathFinding, Mismatch, Observation, PlacedArgument
from conformance.report import gather, model, site
from conformance.results import history as nights_
from conformance.results import store
from conformance.results.store import views
from conformance.vocabulary import CellId, Check, Status
from tests.records import observed
from tests.report.results import HOSTILE, LANE, PROGRAM, bad, nights, ran

MADE = datetime(2026, 1, 3, tzinfo=timezone.utc)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["report", *map(str, arguments)])


def data(directory: Path, name: str) -> Any:
    text = (directory / "data" / f"{name}.js").read_text(encoding="utf-8")
    found = re.fullmatch(r'report\.take\("[\w-]+",(.*)\);\n', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_a_site_has_its_page_its_assets_and_the_data_of_each_lane(tmp_path: Path) -> None:
    nights(tmp_path / "results")
    shown = run(tmp_path / "site", "--results", tmp_path / "results")
    assert (shown.exit_code, shown.output) == (0, f"{tmp_path}/site/index.html: 2 lanes, 2 failing cells\n")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for name in re.findall(r'(?:src|href)="([\w./-]+)"', page):
        assert (tmp_path / "site" / name).is_file(), name
    facts = data(tmp_path / "site", "site")
    assert [lane["name"] for lane in facts["lanes"]] == [LANE, "demo-torch2.13-malloc-release"]
    lane = facts["lanes"][0]
    assert lane["changes"] == {"newly failing": 1, "fixed": 1}
    assert (lane["failing"], lane["account"], lane["coverage"]["compared"]) == (2, "", 1)
    failing = data(tmp_path / "site", "lane-0")["failing"]
    assert failing["kinds"] == ["fail (untouched)", "crash (SIGSEGV)"]
    assert sorted(data(tmp_path / "site", "pages-0-0"), key=int) == [str(n) for n in sorted(failing["cell"])]


def test_a_lane_has_the_operators_that_models_need_and_nothing_implements(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"))
    (lane,) = model.site(gather.gather(tmp_path, None, (), 1), datetime.now(timezone.utc)).main["lanes"]
    (found,) = lane["unimplemented"]
    assert (found["operator"], found["calls"], found["standing"]) == ("convolution_overrideable", 242, 2)


def test_a_failing_cell_s_page_has_arguments_history_and_commands(tmp_path: Path) -> None:
    nights(tmp_path / "results")
    run(tmp_path / "site", "--results", tmp_path / "results")
    part = data(tmp_path / "site", "lane-0")
    cell = next(n for n, kind in zip(part["failing"]["cell"], part["failing"]["kind"]) if kind == 0)
    assert part["history"][str(cell)] == "PF"
    page = data(tmp_path / "site", "pages-0-0")[str(cell)]
    (failure,) = page["failures"]
    assert [a["name"] for a in failure["arguments"] if "dtype" in a] == ["self", "mask"]
    assert failure["kernels"] == ["masked_fill_", "fill_"]
    assert failure["repeat"] == f"pytest --pyargs conformance --backend demo --case '{failure['case']}'"
    assert failure["script"] == f"conformance repro --backend demo '{failure['case']}'"
    assert page["program"] == PROGRAM


def test_the_causes_of_a_lane_leave_known_failures_out(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad(), bad("where.self"), observed("masked_fill_.Scalar"))
    (tmp_path / "expected").mkdir()
    rule = '[[rule]]\nop = ["where.self"]\nstatus = "fail"\nreason = "not yet"\n'
    (tmp_path / "expected" / "demo.toml").write_text(rule)
    run(tmp_path / "site", "--results", tmp_path / "results", "--expected", tmp_path / "expected")
    part = data(tmp_path / "site", "lane-0")
    case = "ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#opinfo.masked_fill.3@self"
    cell = part["failing"]["cell"][0]
    assert part["causes"] == [{
        "name": "masked_fill_", "kernel": "masked_fill_", "cells": [cell],
        "overloads": [{"name": "masked_fill_.Scalar", "cells": 1, "own": True}],
        "manner": {"signal": "", "error": "", "message": "", "check": "untouched"}, "fails_by": "",
        "contrasts": [{"axis": "layout", "failing": ["offset_gap"], "passing": ["contiguous"]}],
        "example": case, "cell": cell,
        "commands": {
            "repeat": f"pytest --pyargs conformance --backend demo --case '{case}'",
            "triage": f"conformance triage --backend demo '{case}'",
        },
    }]  # fmt: skip
    assert part["to_mend"] == "1 kernel"


def test_no_text_of_results_ends_a_script_or_begins_a_tag(tmp_path: Path) -> None:
    lane = "demo-<script>alert(1)<"
    cell = CellId(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    facts = {"kind": HOSTILE, HOSTILE: HOSTILE}
    argument = PlacedArgument(HOSTILE, HOSTILE, HOSTILE, (1,), (1,), 0, 1, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    death = Death(HOSTILE, phase=HOSTILE, log=HOSTILE)
    failure = CaseFailure(
        HOSTILE, (Mismatch(Check.VALUE, HOSTILE, facts),), (argument,), death, (HOSTILE,), HOSTILE, HOSTILE, HOSTILE
    )
    hostile = Observation(cell, HOSTILE, Status.FAIL, 1, (failure,), HOSTILE, HOSTILE)
    ran(tmp_path / "results", 1, hostile, lane=lane, torch=HOSTILE, backend=HOSTILE, compiler=HOSTILE, tier=HOSTILE)
    assert run(tmp_path / "site", "--results", tmp_path / "results").exit_code == 0
    for file in (tmp_path / "site" / "data").iterdir():
        text = file.read_text(encoding="utf-8")
        assert "<" not in text
        assert "\u2028" not in text
    assert data(tmp_path / "site", "site")["lanes"][0]["torch"] == HOSTILE
    assert data(tmp_path / "site", "pages-0-0")["0"]["failures"][0]["case"] == HOSTILE


def test_text_that_is_no_unicode_is_written_all_the_same() -> None:
    assert json.loads(site.script("x", "\udc80").decode().removeprefix('report.take("x",')[:-3]) == "\udc80"


def test_known_failures_are_marked_with_their_rule(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad(), bad("where.self"))
    rule = '[[rule]]\nop = ["where.self"]\nstatus = "fail"\nreason = "not yet"\nlink = "https://example.org/1"\n'
    (tmp_path / "expected").mkdir()
    (tmp_path / "expected" / "demo.toml").write_text(rule)
    run(tmp_path / "site", "--results", tmp_path / "results", "--expected", tmp_path / "expected")
    failing = data(tmp_path / "site", "lane-0")["failing"]
    assert failing["rule"] == [0, 1]
    assert failing["rules"] == [
        {"rule": "rule op=where.self -> fail", "reason": "not yet", "link": "https://example.org/1"}
    ]
    assert data(tmp_path / "site", "site")["lanes"][0]["known"] == 1


def test_a_report_is_replaced_and_its_old_pieces_are_gone(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad())
    for _ in range(2):
        assert run(tmp_path / "site", "--results", tmp_path / "results").exit_code == 0
    ran(tmp_path / "results", 2, observed("mm"))
    assert run(tmp_path / "site", "--results", tmp_path / "results").exit_code == 0
    assert sorted(f.name for f in (tmp_path / "site" / "data").iterdir()) == ["lane-0.js", "site.js"]
    assert sorted(f.name for f in tmp_path.iterdir()) == ["results", "site"]


def test_a_report_stays_if_the_one_to_replace_it_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, scratch = tmp_path / "site", tmp_path / ".site.1"
    for directory in (target, scratch):
        directory.mkdir()
        (directory / "index.html").write_text(directory.name)
    renamed = Path.rename

    def rename(self: Path, to: Path) -> Path:
        if self == scratch:
            raise KeyboardInterrupt
        return renamed(self, to)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        site._swap(scratch, target)  # noqa: SLF001
    assert (target / "index.html").read_text() == "site"
    monkeypatch.undo()
    site._swap(scratch, target)  # noqa: SLF001
    assert (target / "index.html").read_text() == ".site.1"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["notes.txt", "data/other.js", ".hidden", "index.html"])
def test_a_directory_that_holds_something_else_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    ran(tmp_path / "results", 1, bad())
    foreign = tmp_path / "site" / name
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    shown = run(tmp_path / "site", "--results", tmp_path / "results")
    assert shown.exit_code == 2
    assert shown.output == f"Error: {tmp_path}/site: holds {name}, which no report has written; nothing was changed\n"
    assert [f.read_text() for f in (tmp_path / "site").rglob("*") if f.is_file()] == ["mine"]


def test_a_foreign_file_in_a_report_keeps_it_from_being_replaced(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad())
    run(tmp_path / "site", "--results", tmp_path / "results")
    (tmp_path / "site" / "notes.txt").write_text("mine")
    assert "holds notes.txt" in run(tmp_path / "site", "--results", tmp_path / "results").output


def test_an_output_that_is_a_file_is_said(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad())
    (tmp_path / "site").write_text("mine")
    shown = run(tmp_path / "site", "--results", tmp_path / "results")
    assert shown.output == f"Error: {tmp_path}/site: is a file; expected a directory, or a name that is free\n"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad())
    (tmp_path / "file").write_text("")
    shown = run(tmp_path / "file" / "site", "--results", tmp_path / "results")
    assert shown.exit_code == 2
    assert shown.output.startswith(f"Error: {tmp_path}/file/site: cannot be written: ")
    assert shown.output.count("\n") == 1


def test_results_that_are_absent_empty_or_a_file_are_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    said = [run(tmp_path / "site", "--results", tmp_path / name).output for name in ("absent", "empty", "file")]
    assert said[0].startswith(f"Error: {tmp_path}/absent: there is no such directory; `pytest --pyargs conformance")
    assert said[1].startswith(f"Error: {tmp_path}/empty: holds no closed run; `pytest --pyargs conformance")
    assert said[2].endswith(f"Invalid value for '--results': Directory '{tmp_path}/file' is a file.\n")
    assert not (tmp_path / "site").exists()


def damage(run: store.Closed) -> None:
    file = run.directory / "observations.parquet"
    file.chmod(0o644)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def test_a_damaged_run_is_left_out_and_said_on_the_page(tmp_path: Path) -> None:
    old, new = (ran(tmp_path / "results", n, bad()) for n in range(2))
    damage(old)
    shown = run(tmp_path / "site", "--results", tmp_path / "results")
    assert shown.exit_code == 0
    assert "left out: " in shown.output
    assert old.name in shown.output
    (line,) = data(tmp_path / "site", "site")["left_out"]
    assert old.name in line
    damage(new)
    shown = run(tmp_path / "none", "--results", tmp_path / "results")
    assert shown.exit_code == 2
    assert shown.output.startswith(f"Error: {tmp_path}/results: no run can be shown; lane {LANE}: ")
    assert shown.output.count("\n") == 1


def test_a_summary_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    file = ran(tmp_path, 0, bad()).directory / "summary.json"
    file.chmod(0o644)
    file.write_text("{")
    found = gather.gather(tmp_path, tmp_path, (), 30)
    (line,) = found.left_out
    assert line.startswith(f"{file}: not JSON")
    assert not found.broken


def test_the_exit_code_says_that_the_latest_run_of_a_lane_is_damaged(tmp_path: Path) -> None:
    _, new = (ran(tmp_path / "results", n, bad()) for n in range(2))
    damage(new)
    shown = run(tmp_path / "site", "--results", tmp_path / "results")
    assert shown.exit_code == 2
    assert data(tmp_path / "site", "site")["lanes"][0]["run"] != new.name


def test_a_report_leaves_out_damaged_runs_and_those_beyond_the_history(tmp_path: Path) -> None:
    old, _, new = (ran(tmp_path / "results", n, bad()) for n in range(3))
    ran(tmp_path / "results", 4, bad(), complete=False)
    damage(old)
    found = gather.gather(tmp_path / "results", tmp_path, (), 30)
    assert (len(found.left_out), found.broken, found.lanes[0].run.name) == (1, False, new.name)
    found = gather.gather(tmp_path / "results", tmp_path, (), 2)
    assert (list(found.left_out), len(found.lanes[0].runs)) == ([], 2)


def test_a_run_that_was_cut_off_is_shown_as_such(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad(), collected=5)
    found = gather.gather(tmp_path / "results", tmp_path, (), 30)
    (lane,) = model.site(found, MADE).main["lanes"]
    assert lane["account"] == "accounting does not balance: 5 cells collected, 1 in the statuses: 4 lost"
    assert not lane["ended"]


def test_a_partial_run_does_not_hide_the_whole_one_before_it(tmp_path: Path) -> None:
    whole = ran(tmp_path / "results", 1, bad(), observed("mm"))
    ran(tmp_path / "results", 2, observed("mm"), complete=False)
    found = gather.gather(tmp_path / "results", tmp_path, (), 30)
    assert (found.lanes[0].run.name, found.lanes[0].later) == (whole.name, 1)


def test_flaky_cells_are_listed_with_their_reason(tmp_path: Path) -> None:
    for night, cell in enumerate([observed("mm"), bad("mm", "float32-contiguous"), observed("mm")]):
        ran(tmp_path / "results", night, cell)
    run(tmp_path / "site", "--results", tmp_path / "results")
    assert data(tmp_path / "site", "lane-0")["flaky"] == [
        [0, "ops/masking.py::mm[float32-contiguous]", "the same build both failed and passed"]
    ]
    assert data(tmp_path / "site", "lane-0")["history"]["0"] == "PFP"


def test_a_report_includes_the_kill_rate_and_leaves_out_another_file(tmp_path: Path) -> None:
    ran(tmp_path / "results", 1, bad())
    file = tmp_path / "results" / "kill-rate" / "summary.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"faults": 3, "killed": 2, "lanes": {}}))
    found = gather.gather(tmp_path / "results", tmp_path, (), 30)
    assert (found.kill_rate["killed"], found.left_out) == (2, [])
    file.write_text("[]")
    found = gather.gather(tmp_path / "results", tmp_path, (), 30)
    assert list(found.left_out) == [f"{file}: is not a summary of the kill-rate"]


def test_the_report_needs_a_directory_or_the_text_option(tmp_path: Path) -> None:
    assert run().output == "Error: expected either DIR, for the site, or --text; got neither\n"
    assert "got both" in run(tmp_path, "--text").output


def test_a_cell_that_a_run_has_not_does_not_waver(tmp_path: Path) -> None:
    for night, cells in enumerate([[observed("mm")], [observed("mm"), bad()], [observed("mm")]]):
        ran(tmp_path, night, *cells)
    assert gather.gather(tmp_path, tmp_path, (), 30).lanes[0].flaky == {}


def test_a_cell_that_a_run_did_not_reach_does_not_waver(tmp_path: Path) -> None:
    ran(tmp_path, 0, bad("mm", "float32-contiguous"))
    ran(tmp_path, 1, observed("mm", status=Status.NOT_REACHED))
    runs_ = nights_.of_series(tmp_path, LANE)
    statuses = views.statuses(runs_, views.ever_failing(runs_))
    assert [run.whole for run in runs_] == [True, False]
    assert nights_.wavering([replace(run, ended=True) for run in runs_], statuses) == {}


def test_a_death_that_some_tries_do_not_repeat_is_flaky(tmp_path: Path) -> None:
    death = Death("SIGSEGV", finding=DeathFinding("flaky", (2, 5)))
    failure = CaseFailure("mm[float32-contiguous]#s.0", death=death)
    crash = replace(observed("mm", status=Status.CRASH), failures=(failure,))
    ran(tmp_path, 0, crash)
    assert gather.gather(tmp_path, tmp_path, (), 30).lanes[0].flaky == {
        crash.cell: "its process dies in some tries, not in all"
    }
