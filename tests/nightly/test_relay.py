"""The report to the relay, within its size limits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conformance.nightly import relay
from conformance.nightly.families import Failing
from conformance.nightly.relay import Ran
from conformance.records import CaseFailure
from conformance.vocabulary import Status
from tests.records import observed

COMMIT = "0" * 40
COUNTS = {s.value: 0 for s in Status}
RAN = Ran(
    "demo-torchnightly-malloc-release", "2.16.0.dev20261121", COUNTS | {"pass": 90, "fail": 4, "unsupported": 6}, 8, 9
)


def failing(overload: str = "mm", text: str = "differs\nmore") -> Failing:
    cell = replace(observed(overload, status=Status.FAIL), failures=(older("the case", text),))
    return Failing(RAN.lane, "demo", cell)


def older(case: str, text: str) -> CaseFailure:
    """Return a failure in the older format, with this text."""
    return CaseFailure(case, older=text, older_check="value")


FAILING = failing()


def told(*failing: Failing, ran: Ran = RAN) -> dict[str, str]:
    return relay.inputs([ran], failing, COMMIT, "https://example.org/site", None)


def test_the_counts_are_all_cells_and_those_expected_to_fail_are_skipped() -> None:
    given = told(FAILING)
    assert (given["status"], given["conclusion"], given["event-type"]) == ("completed", "failure", "nightly")
    assert given["delivery-id"] == COMMIT
    assert json.loads(given["test-results"]) == {
        "passed": 90, "failed": 1, "skipped": 9, "coverage": {RAN.lane: {"compared": 8, "total": 9}},
    }  # fmt: skip
    (test,) = json.loads(given["failed-tests-detail"])
    assert (test["name"], test["classname"], test["stacktrace"]) == ("mm: fail (value)", "mm", "differs\nmore")
    assert test["message"] == f"1 cells in {RAN.lane}; first: the case: differs"


def test_the_relay_gets_a_success_only_for_a_complete_night_that_passed() -> None:
    assert told()["conclusion"] == "success"
    cut = replace(RAN, by_status=RAN.by_status | {"not_reached": 1})
    assert told(ran=cut)["conclusion"] == "failure"
    assert relay.inputs([], [], COMMIT, "", None)["conclusion"] == "failure"


def test_a_long_relay_text_is_cut_between_characters() -> None:
    tests = json.loads(told(failing(text="é" * 9999))["failed-tests-detail"])
    assert max(len(t["stacktrace"].encode()) for t in tests) == relay.STACK
    assert max(len(t["message"].encode()) for t in tests) <= relay.MESSAGE


def test_the_largest_families_are_listed_as_far_as_the_limits_allow() -> None:
    few = told(*[failing(f"op{i}", "é" * 9999) for i in range(1200)])["failed-tests-detail"]
    assert len(few) <= relay.DETAIL < len(few) + relay.STACK * len("\\u00e9")
    many = json.loads(told(*[failing(f"op{i}", "x") for i in range(1200)])["failed-tests-detail"])
    assert len(json.loads(few)) < len(many) <= relay.MOST_TESTS


def test_no_text_of_a_result_ends_an_output() -> None:
    lines = relay.outputs(told(failing(text="a\nconclusion=success\r\nb\u2028c\ud800"))).splitlines()
    assert [line.partition("=")[0] for line in lines] == [*told()]
    with pytest.raises(ValueError, match="artifact-url: contains a line break"):
        relay.outputs({"artifact-url": "https://x\nconclusion=success"})


def test_the_verdict_is_an_output_of_one_line() -> None:
    given = relay.inputs([RAN], [FAILING], COMMIT, "", {"summary": "two\nlines, é"})
    assert json.loads(given["triage-verdict"]) == {"summary": "two\nlines, é"}
    assert "triage-verdict={" in relay.outputs(given)
    assert told()["triage-verdict"] == ""
