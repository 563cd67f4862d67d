"""Closed runs compared with each other, and their diff."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.records import Observation
from conformance.results import history, store
from conformance.results.store import cell_outcomes, runs
from conformance.results.store.manifest import run_name
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
NIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
SCHEMAS = {"hash": ["aten::hash(Tensor self) -> Tensor", ""]}


def ran(results: Path, night: int, *cells: Observation, lane: str = LANE, **given: Any) -> runs.Closed:
    given = {"collected": len(cells), "run": run_name(lane, NIGHT + timedelta(days=night)), "lane": lane, **given}
    with store.Writer(results / lane, told := manifest(**given)) as writer:
        for cell in cells:
            writer.append(cell)
        writer.finish({"by_status": {}, "schemas": SCHEMAS if told.torch == "2.8.0" else {}})
    return runs.opened(results / store.RUNS / told.run)


def bad(overload: str, *checks: str) -> Observation:
    return observed(overload, status=Status.FAIL, checks=checks or ("value",))


def run(results: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ["diff", "--results", str(results), *arguments])


def told(shown: Result) -> dict[str, str]:
    return {cell["cell"].split("::")[1].split("[")[0]: cell["change"] for cell in json.loads(shown.output)["cells"]}


def test_cells_that_end_alike_are_not_mentioned(tmp_path: Path) -> None:
    one, two = (ran(tmp_path, n, observed("mm"), bad("cat"), backend_commit=str(n)) for n in range(2))
    assert cell_outcomes.differing(one, two) == []
    shown = run(tmp_path, one.name, two.name)
    assert shown.exit_code == Exit.OK


def test_the_signal_of_a_death_is_a_difference_only_on_the_device(tmp_path: Path) -> None:
    def once(n: int, signal: str) -> runs.Closed:
        lacking = observed("mm", status=Status.UNSUPPORTED, signal=signal)
        return ran(tmp_path, n, lacking, observed("cat", status=Status.CRASH, signal=signal))

    (pair,) = cell_outcomes.differing(once(0, "SIGSEGV"), once(1, "SIGABRT"))
    assert pair.cell.overload == "cat"
    assert [o.kind for o in (pair.before, pair.after) if o] == ["crash (SIGSEGV)", "crash (SIGABRT)"]


def test_every_class_of_change_is_told(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), bad("cat"), bad("sum"), observed("old"), bad("same"), backend_commit="a")
    ran(
        tmp_path,
        1,
        bad("mm"),
        observed("cat"),
        bad("sum", "stride"),
        observed("fresh"),
        bad("same"),
        backend_commit="b",
    )
    shown = run(tmp_path, f"{LANE}~1", LANE, "--format", "json")
    assert told(shown) == {
        "mm": "newly failing", "sum": "changed kind", "fresh": "new", "old": "gone", "cat": "fixed",
    }  # fmt: skip
    assert shown.exit_code == Exit.NEWLY_FAILING
    text = run(tmp_path, f"{LANE}~1", LANE).output
    assert "1 newly failing, 0 flaky, 1 changed kind, 1 new, 1 gone, 1 fixed, 0 not compared" in text
    assert "::mm[float32-contiguous]  pass -> fail (value); first: mm[float32-contiguous]#s.0" in text


def test_the_way_back_is_a_difference_and_no_failure(tmp_path: Path) -> None:
    ran(tmp_path, 0, bad("mm"), backend_commit="a")
    ran(tmp_path, 1, observed("mm"), backend_commit="b")
    assert run(tmp_path, f"{LANE}~1", LANE).exit_code == Exit.DIFFERENT


def test_a_new_cell_that_fails_weighs_as_one_that_newly_fails(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), backend_commit="a")
    ran(tmp_path, 1, observed("mm"), bad("cat"), backend_commit="b")
    assert run(tmp_path, f"{LANE}~1", LANE).exit_code == Exit.NEWLY_FAILING


def test_a_cell_that_differs_between_runs_of_one_build_is_flaky(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"))
    ran(tmp_path, 1, bad("mm"))
    shown = run(tmp_path, f"{LANE}~1", LANE)
    assert shown.exit_code == Exit.DIFFERENT
    assert "the same build both failed and passed" in shown.output


@pytest.mark.parametrize(("ends", "change"), [("pfpf", "flaky"), ("ppff", "newly failing"), ("pfp", "fixed")])
def test_a_cell_that_often_changes_is_flaky_and_a_repaired_one_is_not(tmp_path: Path, ends: str, change: str) -> None:
    for night, end in enumerate(ends):
        ran(tmp_path, night, bad("mm") if end == "f" else observed("mm"), backend_commit=str(night))
    older = f"{LANE}~{2 if ends == 'ppff' else 1}"
    assert told(run(tmp_path, older, LANE, "--format", "json")) == {"mm": change}


def test_what_a_cell_did_before_the_latest_nights_does_not_make_it_flaky(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for night, end in enumerate("pfpfppppf"):
        ran(tmp_path, night, bad("mm") if end == "f" else observed("mm"), backend_commit=str(night))
    assert told(run(tmp_path, f"{LANE}~1", LANE, "--format", "json")) == {"mm": "flaky"}
    monkeypatch.setattr(history, "NIGHTS", 5)
    assert told(run(tmp_path, f"{LANE}~1", LANE, "--format", "json")) == {"mm": "newly failing"}


def test_a_dirty_tree_is_no_build_to_be_flaky_under(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), backend_commit="a-dirty")
    ran(tmp_path, 1, bad("mm"), backend_commit="a-dirty")
    assert run(tmp_path, f"{LANE}~1", LANE).exit_code == Exit.NEWLY_FAILING


def test_a_run_of_a_part_does_not_make_the_rest_gone(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), observed("cat"))
    ran(tmp_path, 1, observed("mm"), complete=False)
    shown = run(tmp_path, f"{LANE}~1", LANE)
    assert shown.exit_code == Exit.OK
    assert "0 gone, 0 fixed, 1 not compared" in shown.output


def test_a_whole_run_of_a_narrower_tier_does_not_make_the_rest_gone(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), observed("cat"), backend_commit="a")
    ran(tmp_path, 1, observed("mm"), tier="smoke", backend_commit="b")
    assert "0 gone, 0 fixed, 1 not compared" in run(tmp_path, f"{LANE}~1", LANE).output
    assert "0 new, 0 gone, 0 fixed, 1 not compared" in run(tmp_path, LANE, f"{LANE}~1").output
    ran(tmp_path, 2, observed("sum"), tier="smoke", backend_commit="c")
    assert "1 new, 1 gone, 0 fixed, 0 not compared" in run(tmp_path, f"{LANE}~1", LANE).output


def test_two_tiers_of_one_build_are_no_flaky_cell(tmp_path: Path) -> None:
    ran(tmp_path, 0, bad("mm"))
    ran(tmp_path, 1, observed("mm"), tier="smoke")
    assert told(run(tmp_path, f"{LANE}~1", LANE, "--format", "json")) == {"mm": "fixed"}


def test_a_cell_that_was_not_reached_is_not_compared(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), observed("cat"))
    ran(tmp_path, 1, observed("mm"), observed("cat", status=Status.NOT_REACHED))
    assert told(run(tmp_path, f"{LANE}~1", LANE, "--format", "json")) == {"cat": "not compared"}


def test_a_cell_that_a_torch_has_not_is_told_with_the_schema(tmp_path: Path) -> None:
    new = "demo-torch2.10-malloc-release"
    ran(tmp_path, 0, observed("mm"), backend_commit="a")
    ran(tmp_path, 1, observed("mm"), observed("hash"), lane=new, torch="2.10.0")
    shown = run(tmp_path, LANE, new)
    assert "recorded as aten::hash(Tensor self) -> Tensor; torch 2.8.0 lacks it" in shown.output
    across = run(tmp_path, "--across", "torch")
    assert "2.8.0 · 2.10.0: 1 cell of 1 overload differs" in across.output
    assert "hash  1 cell  2.8.0 absent, 2.10.0 pass" in across.output
    assert "torch 2.8.0 lacks it" in across.output
    assert across.exit_code == Exit.DIFFERENT


def test_a_cell_that_a_lane_s_tier_leaves_out_is_not_absent_there(tmp_path: Path) -> None:
    new = "demo-torch2.10-malloc-release"
    ran(tmp_path, 0, observed("mm"), tier="smoke")
    ran(tmp_path, 0, observed("mm"), observed("cat"), lane=new, torch="2.10.0")
    assert "cat  1 cell  2.8.0 not run, 2.10.0 pass" in run(tmp_path, "--across", "torch").output


def test_lanes_are_compared_along_one_axis_with_the_others_equal(tmp_path: Path) -> None:
    for lane, given in {
        LANE: {"environment": "malloc"},
        "demo-torch2.8-guard-release": {"environment": "guard"},
        "demo-torch2.9-malloc-release": {"torch": "2.9.0"},
    }.items():
        ran(tmp_path, 0, bad("mm") if "guard" in lane else observed("mm"), observed("cat"), lane=lane, **given)
    shown = run(tmp_path, "--across", "allocator")
    assert "guard · malloc: 1 cell of 1 overload differs\n  mm  1 cell  guard fail (value), malloc pass" in shown.output
    assert shown.exit_code == Exit.NEWLY_FAILING
    assert run(tmp_path, "--across", "torch").exit_code == Exit.OK
    assert "no two lanes differ only in it" in run(tmp_path, "--across", "build").output
    assert "no two lanes differ only in it" in run(tmp_path, LANE, LANE, "--across", "torch").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([LANE], "expected two runs, OLD and NEW, or --across torch|allocator|build; got 1"),
        ([LANE, "demo-torch2.8-mallok-release"], f"near: {LANE}"),
        (["--across", "tortch"], "'tortch' is not one of"),
    ],
)
def test_a_mistake_is_one_line_with_what_is_near(tmp_path: Path, arguments: list[str], message: str) -> None:
    ran(tmp_path, 0, observed("mm"))
    shown = run(tmp_path, *arguments)
    assert shown.exit_code == Exit.INTERRUPTED
    assert message in shown.output


def test_a_run_that_was_damaged_since_is_refused(tmp_path: Path) -> None:
    one, two = ran(tmp_path, 0, observed("mm")), ran(tmp_path, 1, observed("mm"))
    one.rows.chmod(0o644)
    one.rows.write_bytes(bytes(one.bytes))
    shown = run(tmp_path, one.name, two.name)
    assert shown.exit_code == Exit.INTERRUPTED
    assert "its hash differs from its manifest" in shown.output
