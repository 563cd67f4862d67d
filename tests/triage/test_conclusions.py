"""Conclusions from invented evidence: each hypothesis holds, is ruled out, and stays open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.triage import conclusions, report
from conformance.triage.conclusions import Ruling
from conformance.triage.evidence import Before, CopyProbe, Evidence, Found, Kernel, LaneRun
from conformance.triage.lanes import OWN

CLONE = Found(6, "clone", "value", "result: 3 of 6 elements differ", "model.py:7: x.contiguous()")
COPYING = (
    Kernel("clone", "", "composite"),
    Kernel("copy_", "clone", "composite"),
    Kernel("_copy_from", "copy_", "native"),
)
FILLING = (Kernel("masked_fill_", "", "native"),)
SOUND = (("exact", ""), ("guard", ""))


def run(lane: str, found: Found | None = CLONE, ops: int = 9) -> LaneRun:
    return LaneRun(lane, found, ops)


# A copy that ignores strides, as seen under two allocators.
INCIDENT = Evidence(
    (run("exact"), run("guard", replace(CLONE, check="", died="SIGSEGV"))),
    alone=(("exact", True), ("guard", True)),
    kernels=COPYING,
    copy=CopyProbe("wrong", "right"),
    allocator=SOUND,
    threads=SOUND,
    single_thread=run("single"),
    torch="2.13.0",
)


def ruling(e: Evidence, hypothesis: str) -> Ruling:
    (found,) = (v.ruling for v in conclusions.conclusions(e) if v.hypothesis == hypothesis)
    return found


def test_the_incident_is_the_copy_and_nothing_else() -> None:
    rulings = {v.hypothesis: v.ruling.value for v in conclusions.conclusions(INCIDENT)}
    assert rulings == {
        "copy": "holds", "allocator": "ruled out", "a kernel": "ruled out", "functorch interplay": "ruled out",
        "torch version": "open", "threads": "ruled out",
    }  # fmt: skip
    assert conclusions.culprit(INCIDENT) == "_copy_from"
    assert "_copy_from, called by clone (call 6 of the program" in report.headline(INCIDENT)


def test_every_verdict_gives_its_evidence() -> None:
    assert all(v.because for v in conclusions.conclusions(INCIDENT))


def test_the_first_op_is_the_culprit_not_the_one_that_died() -> None:
    victim = Found(40, "all", "", "", died="SIGABRT")
    e = replace(INCIDENT, runs=(run("exact", victim), run("guard"), run("pool", None)))
    assert e.first == ("guard", CLONE)
    assert e.finding_lanes == ("guard",)


def test_conclusions_without_a_finding_have_no_verdicts() -> None:
    e = Evidence((run("exact", None),))
    assert conclusions.conclusions(e) == ()
    assert report.headline(e) == "nothing failed in 9 ops of 1 run"
    assert e.sound


def test_the_headline_of_an_interrupted_triage_says_so() -> None:
    e = Evidence((run("exact", None),), complete=False)
    assert not e.sound
    assert report.headline(e) == "interrupted: nothing has failed so far in 9 ops of 1 run"
    assert report.headline(replace(INCIDENT, complete=False)).startswith("interrupted; so far: first failing op: ")


def test_a_program_that_fails_by_itself_is_no_program_without_a_failure() -> None:
    broken = LaneRun("late", None, 4, trouble="the program raised ValueError: no file, at x.py:2: f()\nmore")
    e = Evidence((run("exact", None), broken))
    assert not e.sound
    assert report.headline(e) == (
        "the program itself failed in 1 of 2 runs, and no op before that did; nothing failed in 9 ops of 2 runs\n"
        "  first in lane 'late': the program raised ValueError: no file, at x.py:2: f()"
    )
    assert "no op on the device" in report.headline(Evidence((run("exact", None, ops=0),)))
    assert not Evidence((run("exact", None, ops=0),)).sound
    unjudged = Evidence((LaneRun("exact", None, 3, unjudged=3),))
    assert report.headline(unjudged) == "none of 3 ops on the device could be compared with CPU"
    assert not unjudged.sound


def test_an_op_that_failed_before_the_program_did_is_the_finding() -> None:
    e = replace(INCIDENT, runs=(*INCIDENT.runs, LaneRun("late", None, 4, trouble="the program raised ValueError: no")))
    assert report.headline(e) == report.headline(INCIDENT)


@pytest.mark.parametrize(
    ("probe", "wanted"), [("wrong", Ruling.HOLDS), ("SIGSEGV", Ruling.HOLDS), ("right", Ruling.RULED_OUT)]
)
def test_the_copy_is_judged_by_itself(probe: str, wanted: Ruling) -> None:
    assert ruling(replace(INCIDENT, copy=CopyProbe(probe, "right")), "copy") is wanted


def test_an_op_that_does_not_copy_rules_out_the_copy_and_its_kernel_holds() -> None:
    found = Found(3, "masked_fill_.Scalar", "untouched", "4 bytes outside the view changed")
    e = replace(INCIDENT, runs=(run("exact", found), run("guard", found)), kernels=FILLING, copy=None)
    assert ruling(e, "copy") is Ruling.RULED_OUT
    assert ruling(e, "a kernel") is Ruling.HOLDS
    assert conclusions.culprit(e) == "masked_fill_"


def test_the_allocator_is_suspected_if_memory_is_wrong_but_the_op_is_right() -> None:
    e = replace(
        INCIDENT, alone=(("exact", False), ("guard", False)), copy=CopyProbe("right", "right"),
        allocator=(("exact", "a block of 64 bytes changed by itself"), ("guard", "")),
    )  # fmt: skip
    assert ruling(e, "allocator") is Ruling.HOLDS
    assert ruling(e, "a kernel") is Ruling.OPEN


def test_without_a_second_lane_the_allocator_stays_open() -> None:
    e = replace(INCIDENT, runs=(run("exact"),), alone=(("exact", True),), allocator=(("exact", ""),))
    assert ruling(e, "allocator") is Ruling.OPEN


def test_functorch_is_not_ruled_out_if_a_transformed_op_is_right_alone() -> None:
    inside = replace(CLONE, functorch=True)
    alone = (("exact", False),)
    assert ruling(replace(INCIDENT, runs=(run("exact", inside),), alone=alone), "functorch interplay") is Ruling.OPEN
    assert ruling(replace(INCIDENT, alone=alone), "functorch interplay") is Ruling.RULED_OUT


@pytest.mark.parametrize(
    ("versions", "wanted"),
    [((), Ruling.OPEN), ((("2.8.0", True),), Ruling.RULED_OUT), ((("2.8.0", False),), Ruling.HOLDS)],
)
def test_the_torch_version_is_judged_by_the_script_under_another(
    versions: tuple[tuple[str, bool], ...], wanted: Ruling
) -> None:
    assert ruling(replace(INCIDENT, versions=versions), "torch version") is wanted


@pytest.mark.parametrize(
    ("single", "wanted"),
    [(None, Ruling.OPEN), (run("single", None), Ruling.HOLDS), (run("single"), Ruling.RULED_OUT),
     (run("single", replace(CLONE, index=8)), Ruling.OPEN)],
)  # fmt: skip
def test_threads_are_judged_by_a_run_without(single: LaneRun | None, wanted: Ruling) -> None:
    assert ruling(replace(INCIDENT, single_thread=single), "threads") is wanted


def test_threads_hold_where_blocks_go_wrong_only_from_several() -> None:
    e = replace(INCIDENT, alone=(("exact", False),), threads=(("exact", "died of SIGABRT"),))
    assert ruling(e, "threads") is Ruling.HOLDS
    everywhere = replace(e, allocator=(("exact", "a block of 64 bytes changed by itself"),))
    assert ruling(everywhere, "threads") is Ruling.RULED_OUT


def test_a_lane_that_alone_finds_something_says_nothing_of_threads() -> None:
    e = replace(INCIDENT, runs=(run(OWN, None), run("pool")), single_thread=run("single", None))
    assert ruling(e, "threads") is Ruling.OPEN


SORT = Before(9, again=(3, 3), alone=(0, 3), needed=("sort",), confirmed=(3, 3), minimal=True)


def test_a_failing_replay_rules_out_threads_and_transforms() -> None:
    runs = (run("exact", replace(CLONE, functorch=True)),)
    e = replace(INCIDENT, runs=runs, alone=(("exact", False),), single_thread=run("single", None), before=SORT)
    e = replace(e, copy=CopyProbe("right", "right"))
    assert ruling(e, "threads") is Ruling.RULED_OUT
    assert ruling(e, "functorch interplay") is Ruling.RULED_OUT
    assert ruling(replace(e, before=replace(SORT, confirmed=(2, 3))), "threads") is Ruling.HOLDS
    (kernel,) = (v for v in conclusions.conclusions(e) if v.hypothesis == "a kernel")
    assert kernel.because == ("the op alone is correct: it fails again after sort",)
    assert "clone, after sort (call 6 of the program" in report.headline(e)


@pytest.mark.parametrize(
    ("lanes", "blocks", "wanted"),
    [(("exact", "pool"), "", Ruling.RULED_OUT), (("pool",), "", Ruling.OPEN),
     (("exact", "pool"), "a block of 64 bytes changed by itself", Ruling.HOLDS)],
)  # fmt: skip
def test_calls_that_fail_under_several_allocators_rule_out_the_allocator(
    lanes: tuple[str, ...], blocks: str, wanted: Ruling
) -> None:
    allocator = (("exact", ""), ("pool", blocks))
    e = replace(INCIDENT, alone=(("exact", False), ("pool", False)), allocator=allocator)
    assert ruling(replace(e, before=replace(SORT, lanes=lanes)), "allocator") is wanted


def test_the_report_reads_the_same_in_all_three_forms() -> None:
    text, page = report.text(INCIDENT, "import torch\n"), report.markdown(INCIDENT, "import torch\n")
    data = report.as_json(INCIDENT, "import torch\n")
    for form in (text, page, data):
        assert "_copy_from" in form
        assert "ruled out" in form
        assert "import torch" in form
