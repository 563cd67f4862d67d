"""The verdict on a failed night, in the terms of PyTorch's CI relay."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from conformance.nightly import verdict
from conformance.nightly.families import Failing
from conformance.nightly.verdict import Culprit, Ends, Evidence
from conformance.records import CaseFailure, Repeats, Repetition
from conformance.vocabulary import Status
from tests.records import observed

LANE = "demo-torchnightly-malloc-release"
ENDS = Ends("2.16.0.dev20261122", "b" * 40, "2.16.0.dev20261121", "a" * 40)
TORCH = Culprit("torch", "torch changed from one night to the next, the backend did not change")
BACKEND = Culprit("backend", "backend: last good v1, first bad v2")


def failing(
    overload: str = "mm", case: str = "a case", status: Status = Status.FAIL, repetition: Repetition | None = None
) -> Failing:
    found = CaseFailure(case, older="differs", older_check="value", repetition=repetition)
    return Failing(LANE, "demo", replace(observed(overload, status=status), failures=(found,)))


def night(*cells: Failing, new: bool = True, compared: bool = True, not_reached: int = 0) -> Evidence:
    return Evidence(LANE, cells, frozenset(f.cell for f in cells) if new else frozenset(), compared, not_reached, ENDS)


def told(*lanes: Evidence, **culprits: Culprit) -> dict[str, Any]:
    found = verdict.verdict(lanes, {name.replace("_", " "): culprit for name, culprit in culprits.items()}, "1.0")
    assert found is not None
    return found


def test_a_night_without_failures_has_no_verdict() -> None:
    assert verdict.verdict([night()], {}, "1.0") is None


def test_a_failure_that_came_with_another_torch_alone_is_upstream() -> None:
    found = told(night(failing()), a_case=TORCH)
    assert (found["schema_version"], found["category"], found["confidence"]) == (1, "upstream", "high")
    assert found["summary"].endswith("1 of 1 unexpected failures: mm: fail (value)")
    assert ENDS.before in found["suspected_upstream"]["reason"]
    assert found["analyzer"] == {"name": "op-conformance", "version": "1.0"}
    assert [e["test"] for e in found["evidence"]] == ["mm: fail (value)"]


def test_a_failure_that_a_search_finds_in_the_backend_is_the_backend_s() -> None:
    found = told(night(failing()), a_case=BACKEND)
    assert (found["category"], found["confidence"]) == ("backend", "high")
    assert "suspected_upstream" not in found  # the relay drops a verdict with this field


def test_one_search_speaks_for_all_cells_of_its_family() -> None:
    assert told(night(failing(), failing(case="another")), a_case=TORCH)["confidence"] == "high"


def test_a_cell_that_failed_the_night_before_is_the_backend_s() -> None:
    found = told(night(failing(), new=False))
    assert (found["category"], found["confidence"]) == ("backend", "medium")


def test_what_nobody_searched_is_unknown() -> None:
    assert told(night(failing()))["category"] == "unknown"
    assert told(night(failing(), new=False, compared=False))["category"] == "unknown"


def test_upstream_counts_before_all_else() -> None:
    cells = failing(case="theirs"), failing("cat", case="ours"), failing("sin", status=Status.ERROR)
    found = told(night(*cells), theirs=TORCH, ours=BACKEND)
    assert found["category"] == "upstream"
    assert "1 of 3 unexpected failures" in found["summary"]


def test_a_case_that_fails_in_some_runs_is_a_flake() -> None:
    found = told(night(failing(repetition=Repetition(Repeats.FLAKY, (2, 20)))))
    assert (found["category"], found["reproduced_on_retry"]) == ("flake", False)


def test_a_case_that_fails_in_every_fresh_process_is_reproduced() -> None:
    found = told(night(failing(repetition=Repetition(Repeats.STEADY, (5, 5)))))
    assert found["reproduced_on_retry"]


def test_errors_of_the_suite_and_cells_that_were_not_reached_are_infrastructure() -> None:
    assert told(night(failing(status=Status.ERROR)))["category"] == "infra"
    found = told(night(not_reached=7))
    assert found["category"] == "infra"
    assert f"7 cells of {LANE} were not reached" in found["summary"]


def test_a_verdict_stays_within_the_relay_s_size() -> None:
    many = [failing(f"op{i}", case="é" * 5000) for i in range(50)]
    found = told(night(*many))
    assert len(found["evidence"]) == verdict.MOST_EVIDENCE
    assert len(found["summary"].encode()) <= verdict.SUMMARY
    assert len(json.dumps(found, ensure_ascii=False).encode()) < 16 * 1024
