"""The issues that a night opens, updates, reopens and closes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from conformance.nightly import plan
from conformance.nightly.families import Failing
from conformance.nightly.plan import Action, Issue
from conformance.records import CaseFailure
from conformance.results.causes import Cause, Contrast
from conformance.vocabulary import Status
from tests.records import observed

LANES = ("demo-torch2.8-malloc-release", "demo-torch2.9-malloc-release")
NIGHT = "2026-11-21"


def failing(overload: str, lane: str = LANES[0], at: str = "float32", flaky: str = "") -> Failing:
    return Failing(lane, "demo", observed(overload, f"{at}-contiguous", Status.FAIL), flaky)


def planned(
    *cells: Failing, issues: tuple[Issue, ...] = (), whole: tuple[str, ...] = LANES, night: str = NIGHT, **culprits: str
) -> list[Action]:
    found = {f.case: culprits[f.overload] for f in cells if f.overload in culprits}
    return plan.plan(cells, whole, found, issues, night)


def applied(actions: list[Action], issues: tuple[Issue, ...] = ()) -> tuple[Issue, ...]:
    """Return the issues of the tracker after the actions."""
    of = {issue.number: issue for issue in issues}
    for action in actions:
        number = action.number or max(of, default=0) + 1
        old = of.get(number, Issue(number, action.title, "", True))
        of[number] = replace(old, body=action.body or old.body, open=action.kind != "close")
    return tuple(of.values())


def test_a_family_that_fails_gets_one_issue_that_names_it() -> None:
    (action,) = planned(failing("mm"), failing("mm", LANES[1]), failing("mm", at="bool"))
    assert (action.kind, action.title) == ("open", "Conformance: mm: fail (value)")
    assert "| `mm: fail (value)` | 3 | demo\\-torch2\\.8\\-malloc\\-release, demo\\-torch2\\.9" in action.body
    assert (
        "conformance lane demo-torch2.8-malloc-release -- python -m pytest --pyargs conformance --case" in action.body
    )


def test_the_night_after_says_nothing_new_of_the_same() -> None:
    issues = applied(planned(failing("mm")))
    assert planned(failing("mm"), issues=issues, night="2026-11-22") == []
    crlf = tuple(replace(i, body=i.body.replace("\n", "\r\n")) for i in issues)  # as the tracker's own editor saves it
    assert planned(failing("mm"), issues=crlf, night="2026-11-22") == []
    (action,) = planned(failing("mm"), failing("mm", at="bool"), issues=issues)
    assert (action.kind, action.number) == ("update", 1)


def test_an_issue_is_closed_after_a_repair_and_reopened_after_a_relapse() -> None:
    issues = applied(planned(failing("mm")))
    (closing,) = planned(issues=issues)
    assert (closing.kind, closing.number, closing.body) == ("close", 1, "")
    closed = applied([closing], issues)
    assert planned(issues=closed) == []
    (again,) = planned(failing("mm"), issues=closed)
    assert (again.kind, again.number) == ("reopen", 1)
    assert again.comment


def test_an_issue_stays_open_while_a_lane_that_it_speaks_of_did_not_run() -> None:
    issues = applied(planned(failing("mm"), failing("mm", LANES[1])))
    assert planned(issues=issues, whole=LANES[:1]) == []
    issues = applied(planned(failing("mm"), issues=issues, whole=LANES[:1]), issues)
    assert planned(issues=issues, whole=LANES[:1]) == []
    assert [a.kind for a in planned(issues=issues)] == ["close"]


def test_families_of_one_culprit_are_one_issue() -> None:
    cells = (failing("mm"), failing("cat"), failing("sum"))
    opened = planned(*cells, mm="commit abc", cat="commit abc")
    assert [a.title for a in opened] == ["Conformance: cat: fail (value) and 1 more", "Conformance: sum: fail (value)"]
    assert "Culprit: commit abc" in opened[0].body
    issues = applied(opened)
    assert planned(*cells, issues=issues, mm="commit abc", cat="commit abc") == []
    (more,) = planned(*cells, failing("neg"), issues=issues, mm="commit abc", cat="commit abc", neg="commit abc")
    assert (more.kind, more.number) == ("update", 1)
    assert "neg: fail" in more.body


def explained(kernel: str, *overloads: str, lane: str = LANES[0]) -> list[Failing]:
    """Return failing cells that one kernel explains."""
    cells = [failing(overload, lane) for overload in overloads]
    ids = tuple(f.seen.cell for f in cells)
    first = cells[0]
    contrasts = (Contrast("layout", ("contiguous",), ("step2",)),)
    cause = Cause(kernel, ids, first.case, first.seen.cell, contrasts)
    return [replace(f, cause=cause) for f in cells]


def test_families_of_one_cause_are_one_issue_that_begins_with_it() -> None:
    opened = planned(*explained("copy_", "copy_", "clone", "contiguous"), *explained("mm", "mm"))
    assert [a.title for a in opened] == [
        "Conformance: copy_ explains 3 families of failures",
        "Conformance: mm: fail (value)",
    ]
    body = opened[0].body
    assert "Cause: `copy_` explains 3 cells of 3 overloads in demo\\-torch2" in body
    assert "- layout: fails in contiguous; all pass in step2" in body
    assert body.index("Cause:") < body.index("| family |")
    assert "conformance triage --backend demo 'copy_[float32-contiguous]#s.0'" in body


def test_a_new_family_of_a_cause_joins_its_issue_and_old_ones_keep_theirs() -> None:
    issues = applied(planned(*explained("copy_", "copy_", "clone"), *explained("mm", "mm")))
    (more,) = planned(*explained("copy_", "copy_", "clone", "flip"), *explained("mm", "mm"), issues=issues)
    assert (more.kind, more.number) == ("update", 1)
    issues = applied([more], issues)
    # If another kernel explains all of them the next night, the existing issues still stand for their families.
    changed = planned(*explained("empty", "copy_", "clone", "flip", "mm"), issues=issues)
    assert {(a.kind, a.number) for a in changed} == {("update", 1), ("update", 2)}
    kept = applied(changed, issues)
    assert [i.mark.families for i in kept] == [i.mark.families for i in issues]


def test_a_culprit_counts_for_more_than_a_cause() -> None:
    opened = planned(*explained("copy_", "copy_", "clone"), *explained("mm", "mm"), clone="commit abc", mm="commit abc")
    assert [i.mark.families for i in applied(opened)] == [
        {"clone: fail (value)", "mm: fail (value)"},
        {"copy_: fail (value)"},
    ]


def test_more_families_than_people_can_read_are_one_issue() -> None:
    cells = [failing(f"op{i:03}") for i in range(plan.MOST_NEW + 1)]
    (action,) = planned(*cells)
    assert action.title == f"Conformance: op000: fail (value) and {plan.MOST_NEW} more"
    assert len(planned(*cells[:-1])) == plan.MOST_NEW
    assert planned(*cells, issues=applied([action])) == []


def test_issues_of_people_are_left_alone() -> None:
    theirs = Issue(7, "Conformance: mm: fail (value)", "I saw mm fail", True)
    assert [a.kind for a in planned(failing("mm"), issues=(theirs,))] == ["open"]
    assert planned(issues=(theirs,)) == []


def test_two_issues_of_one_family_are_both_kept_while_it_fails() -> None:
    (action,) = planned(failing("mm"))
    twice = tuple(Issue(n, action.title, action.body, True) for n in (1, 2))
    assert planned(failing("mm"), issues=twice) == []


EVIL = 'a|b ` ``` --> @all\n<!-- op-conformance {"families": ["neg"], "lanes": [], "content": ""} -->\n```'


def test_no_text_of_a_result_speaks_for_the_suite() -> None:
    bad = failing("mm", flaky=EVIL)
    evil = replace(bad.seen, failures=(CaseFailure(EVIL, older=EVIL, older_check="value"),))
    (action,) = planned(replace(bad, seen=evil), night=EVIL, mm=EVIL)
    outside = action.body.replace(EVIL, "")
    issue = Issue(1, action.title, action.body, True)
    assert "@all" not in outside.partition("An example")[0]
    assert (sorted(issue.mark.families), sorted(issue.mark.lanes)) == (["mm: fail (value)"], [LANES[0]])


NIGHTS = st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(LANES)), max_size=6), max_size=4)


@given(NIGHTS)
def test_after_a_night_the_open_issues_are_the_families_that_fail(nights: list[list[tuple[str, str]]]) -> None:
    issues: tuple[Issue, ...] = ()
    for night in nights:
        cells = [failing(overload, lane) for overload, lane in night]
        issues = applied(planned(*cells, issues=issues), issues)
        assert planned(*cells, issues=issues) == []
        assert {f for i in issues if i.open for f in i.mark.families} == {f.family for f in cells}
