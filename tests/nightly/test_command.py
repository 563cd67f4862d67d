"""The steps of the nightly workflow on a store of results."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.records import Observation
from conformance.results import store, summary
from conformance.results.store import runs
from conformance.results.store.manifest import run_name
from conformance.vocabulary import Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
NIGHTLY = "demo-torchnightly-malloc-release"
NIGHT = datetime(2026, 11, 20, 4, tzinfo=timezone.utc)


def ran(night: int, *cells: Observation, lane: str = LANE, **given: Any) -> None:
    run = run_name(lane, NIGHT + timedelta(days=night))
    told = manifest(**{"lane": lane, "run": run, "collected": len(cells), "backend_commit": f"c{night}", **given})
    facts = summary.RunFacts(lane, len(cells), 1.0, 1.0, 0.1, "sha256:1", "2.8.0", "g++ 12.2", "abc")
    with store.Writer(Path("results") / lane, told) as writer:
        for cell in cells:
            writer.append(cell)
        writer.finish(summary.summarize(facts, cells, [summary.Target("mm", "native")]))


def bad(overload: str) -> Observation:
    return observed(overload, status=Status.FAIL)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["nightly", *arguments])


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    expected = tmp_path / "matrices/expected/demo.toml"
    expected.parent.mkdir(parents=True)
    expected.write_text('[[rule]]\nop = "sum"\nstatus = "fail"\nreason = "known"\n')
    return tmp_path


def two_nights() -> None:
    for lane in (LANE, NIGHTLY):
        ran(0, observed("mm"), observed("cat"), bad("old"), bad("sum"), lane=lane)
        ran(1, bad("mm"), observed("cat"), bad("old"), bad("sum"), lane=lane)


def planned(issues: str = "[]") -> list[dict[str, Any]]:
    Path("issues.json").write_text(issues)
    shown = run("plan", "--issues", "issues.json")
    assert shown.exit_code == 0, shown.output
    found: list[dict[str, Any]] = json.loads(shown.output)
    return found


def test_a_new_failure_is_bisected_between_the_commits_of_two_nights() -> None:
    two_nights()
    shown = run("search", "--dry-run", "--", "--tries", "3")
    case = "mm[float32-contiguous]#s.0"
    said = f"{LANE}: bisect {case} --axis backend --good c0 --bad c1 --torch 2.8 --environment malloc"
    assert f"{said} --out bisect/{LANE} --tries 3" in shown.output
    assert "old" not in shown.output
    assert "cells that newly fail: in 2 lanes" in shown.output


def test_few_searches_ask_about_different_causes() -> None:
    names = ("mm", "mm.out", "neg")
    ran(0, *map(observed, names))
    ran(1, *map(bad, names))
    shown = run("search", "--dry-run", "--most", "2").output
    assert "bisect mm.out[float32-contiguous]#s.0 neg[float32-contiguous]#s.0 --axis" in shown


def test_a_lane_of_the_smoke_tier_is_compared_with_its_night_before() -> None:
    ran(0, observed("mm"), observed("left_out"))
    ran(1, observed("mm"), tier="smoke")
    ran(2, observed("mm"), bad("cat"), tier="full", complete=False)
    ran(3, bad("mm"), tier="smoke")
    shown = run("search", "--dry-run")
    assert "bisect mm[float32-contiguous]#s.0 --axis backend --good c1 --bad c3" in shown.output


def test_the_first_night_of_a_wider_tier_has_none_before_it() -> None:
    ran(0, observed("mm"), tier="smoke")
    ran(1, bad("mm"), observed("cat"))
    assert "not compared: it is not complete" in run("diff").output


def test_a_new_torch_with_the_same_backend_is_the_culprit_without_a_search() -> None:
    ran(0, observed("mm"), backend_commit="same", torch="2.16.0.dev1")
    ran(1, bad("mm"), bad("cat"), backend_commit="same", torch="2.16.0.dev2")
    assert "torch changed from 2.16.0.dev1 to 2.16.0.dev2, the backend did not change" in run("search").output
    (action,) = planned()
    assert "Culprit: torch changed from 2\\.16\\.0\\.dev1 to 2\\.16\\.0\\.dev2" in action["body"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "b", "does not report its commit"),
        ("a", "b-dirty", "uncommitted changes"),
        ("a", "a", "neither torch nor the backend changed"),
    ],
)
def test_where_there_is_nothing_to_search_it_is_said(old: str, new: str, said: str) -> None:
    ran(0, observed("mm"), backend_commit=old, cpu="one")
    ran(1, bad("mm"), backend_commit=new, cpu="other")
    assert said in run("search").output
    assert "Culprit" not in planned()[0]["body"]


def test_a_plan_has_tonight_s_unexpected_failures_and_the_search_results() -> None:
    two_nights()
    kept = Path("bisect") / LANE
    kept.mkdir(parents=True)
    case = {"case": "mm[float32-contiguous]#s.0", "kind": "culprit", "before": "c0", "after": "c1"}
    points = [{"name": "c0", "title": "good"}, {"name": "c1", "title": "bad"}]
    (kept / "result.json").write_text(json.dumps({"axis": "backend", "cases": [case], "points": points}))
    actions = planned()
    assert [a["title"] for a in actions] == ["Conformance: mm: fail (value)", "Conformance: old: fail (value)"]
    assert "Culprit: backend: last good c0 \\(good\\), first bad c1 \\(bad\\)" in actions[0]["body"]
    tracker = [
        {"number": 1 + i, "title": a["title"], "body": a["body"], "state": "OPEN"} for i, a in enumerate(actions)
    ]
    assert planned(json.dumps(tracker)) == []
    ran(2, observed("mm"), observed("cat"), bad("old"), bad("sum"))
    ran(2, observed("mm"), observed("cat"), bad("old"), bad("sum"), lane=NIGHTLY)
    assert [(a["kind"], a["number"]) for a in planned(json.dumps(tracker))] == [("close", 1)]


@pytest.mark.parametrize("name", ["searches.json", f"{LANE}/result.json"])
@pytest.mark.parametrize("content", ["no JSON", '[{"other": 1}]', '{"other": 1}'])
def test_a_file_that_is_no_result_of_a_search_is_one_line(name: str, content: str) -> None:
    two_nights()
    file = Path("bisect") / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    shown = run("plan", "--issues", "/dev/null")
    assert (shown.exit_code, shown.output.count("\n")) == (2, 1)
    assert f"Error: {file}: expected what `conformance nightly search` writes" in shown.output


def test_a_lane_that_did_not_run_tonight_says_nothing_of_tonight() -> None:
    two_nights()
    (action, *_) = planned()
    tracker = json.dumps([{"number": 1, "title": action["title"], "body": action["body"], "state": "OPEN"}])
    ran(3, observed("mm"))
    assert [a["kind"] for a in planned(tracker)] == []


def test_the_plan_is_carried_out_by_gh_and_no_text_becomes_an_option(directory: Path) -> None:
    gh = directory / "gh"
    call = "json.dumps([sys.argv[1:], sys.stdin.read()])"
    gh.write_text(
        f"#!{sys.executable}\nimport json, sys\nprint({call}, file=open('calls', 'a'))\nsys.exit('2' in sys.argv)\n"
    )
    gh.chmod(0o755)
    empty = {"number": None, "title": "", "body": "", "comment": ""}
    Path("plan.json").write_text(json.dumps([
        empty | {"kind": "open", "title": "--repo=evil/x", "body": "--web\n$(x)"},
        empty | {"kind": "reopen", "number": 1, "body": "b", "comment": "again"},
        empty | {"kind": "close", "number": 2, "comment": "fixed"},
    ]))  # fmt: skip
    shown = run("apply", "plan.json", "--gh", str(gh))
    calls = [json.loads(line) for line in Path("calls").read_text().splitlines()]
    assert calls == [
        [["label", "create", "op-conformance", "--force"], ""],
        [["issue", "create", "--title=--repo=evil/x", "--label=op-conformance", "--body-file=-"], "--web\n$(x)"],
        [["issue", "reopen", "1"], ""],
        [["issue", "edit", "1", "--body-file=-"], "b"],
        [["issue", "comment", "1", "--body-file=-"], "again"],
        [["issue", "comment", "2", "--body-file=-"], "fixed"],
        [["issue", "close", "2"], ""],
    ]
    assert (shown.exit_code, shown.output) == (1, "3 actions, 2 commands failed\n")


def test_each_lane_is_compared_with_its_night_before() -> None:
    two_nights()
    ran(1, observed("mm"), lane="demo-torch2.9-malloc-release")
    shown = run("diff")
    assert "::mm[float32-contiguous]  pass -> fail (value)" in shown.output
    assert "demo-torch2.9-malloc-release-" in shown.output
    assert "not compared: it is not complete" in shown.output
    assert shown.exit_code == 20


def test_the_issues_there_are_are_asked_of_gh(directory: Path) -> None:
    two_nights()
    (directory / "gh").write_text("#!/bin/sh\necho '[]'\n")
    (directory / "gh").chmod(0o755)
    shown = run("plan", "--gh", str(directory / "gh"))
    assert [a["kind"] for a in json.loads(shown.output)] == ["open", "open"]


def test_the_relay_is_told_of_the_lanes_of_the_nightly_torch() -> None:
    two_nights()
    shown = run("relay", "--commit", "0" * 40, "--artifacts", "https://example.org")
    assert "conclusion=failure\n" in shown.output
    assert '"failed": 2' in shown.output
    assert LANE not in shown.output


def test_the_relay_is_told_of_several_lanes_that_are_named() -> None:
    two_nights()
    shown = run("relay", "--commit", "0" * 40, "--lanes", f"*-torchnightly-*, {LANE}")
    assert LANE in shown.output
    assert "torchnightly" in shown.output


def test_a_night_without_the_nightly_torch_has_nothing_to_tell_the_relay() -> None:
    ran(0, bad("mm"))
    shown = run("relay")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "nothing to report: no lane of tonight is called *-torchnightly-*" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("relay", "--commit", "main"), "expected one full commit of torch, 40 hexadecimal digits; got 'main'"),
        (("relay",), "got ''"),
        (("plan", "--gh", "false"), "false could not list the issues"),
        (("relay", "--commit", "0" * 40, "--lanes", "x*"), "no lane of tonight is called x*"),
        (("plan", "--issues", "bad.json"), "expected a list with number, title, body and state"),
        (("plan", "--issues", "broken.json"), "broken.json: not JSON"),
        (("plan", "--issues", "issues.json"), "state of each: TypeError('body is 2')"),
        (("plan", "--issues", "object.json"), "state of each: TypeError('got a dict')"),
        (("apply", "object.json"), "that `conformance nightly plan` prints: TypeError('got a dict')"),
        (("apply", "bad.json"), "bad.json: expected the actions that `conformance nightly plan` prints"),
        (("apply", "broken.json"), "broken.json: not JSON"),
        (("apply", "plan.json", "--gh", "no_such_gh"), "--gh no_such_gh: no such program"),
        (("plan", "--gh", "no_such_gh"), "--gh no_such_gh: no such program"),
        (("forget", "--results", "nowhere"), "--results nowhere: no such directory"),
        (("paln",), "near: plan"),
        (("plan", "--issues", "bad.json", "--results", "nowhere"), "no closed run in nowhere/runs/"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    two_nights()
    Path("bad.json").write_text('[{"x": 1}]')
    Path("broken.json").write_text("{")
    Path("object.json").write_text("{}")
    Path("issues.json").write_text('[{"number": 1, "title": "t", "body": 2, "state": "OPEN"}]')
    Path("plan.json").write_text('[{"kind": "open", "number": null, "title": "t", "body": "", "comment": ""}]')
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert said in shown.output
    assert isinstance(shown.exception, SystemExit)


def test_old_nights_are_forgotten() -> None:
    for night in range(4):
        ran(night, observed("mm"))
    done = run("forget", "--keep", "3")
    assert (done.exit_code, done.output.startswith("1 run deleted, the oldest 20261120T")) == (0, True)
    assert len(runs.names(Path("results"))) == 3
