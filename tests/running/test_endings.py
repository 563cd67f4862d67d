"""The merged observation of all runs of a cell."""

from __future__ import annotations

from dataclasses import replace

from conformance.records import Lacking, Observation
from conformance.running.endings import merge
from conformance.vocabulary import CellId, Status

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "expanded")


def test_a_merged_observation_has_the_worst_status_of_its_parts() -> None:
    parts = [Observation(CELL, "native", s, 1) for s in (Status.PASS, Status.FAIL, Status.UNSUPPORTED)]
    assert merge(parts, 0).status is Status.FAIL


def test_a_merged_observation_keeps_the_first_script() -> None:
    parts = [Observation(CELL, "native", Status.FAIL, 1, script=script) for script in ("", "first", "second")]
    assert merge(parts, 0).script == "first"


def test_a_merged_observation_gives_each_reason_once() -> None:
    reasons = ("not served", "", "refused", "not served")
    parts = [Observation(CELL, "native", Status.UNSUPPORTED, 1, reason=reason) for reason in reasons]
    assert merge(parts, 0).reason == "not served; refused"


def test_a_merged_observation_that_passes_is_of_some_cases_if_a_part_is() -> None:
    first, last = Observation(CELL, "native", Status.PASS, 1), Observation(CELL, "native", Status.PASS, 1, partial=True)
    assert merge([first, last], 0).partial
    assert not merge([first, first], 0).partial
    assert not merge([replace(first, status=Status.FAIL), last], 0).partial


def test_a_merged_observation_counts_the_deaths_and_no_other_part() -> None:
    dead = Observation(CELL, "native", Status.CRASH, 1, signal="SIGSEGV")
    hung = Observation(CELL, "native", Status.TIMEOUT, 1)
    tainted = Observation(CELL, "native", Status.PASS, 1)
    assert merge([tainted, dead, tainted, hung, dead], 4).reason == "4 more cases not run after 3 deaths"


def test_a_merged_observation_adds_up_the_cases_that_end_at_an_overload_without_a_kernel() -> None:
    found = ((Lacking("_foo", 2), Lacking("a", 1)), (), (Lacking("_foo", 3),))
    parts = [Observation(CELL, "native", Status.PASS, 4, lacking=lacking) for lacking in found]
    assert merge(parts, 0).lacking == (Lacking("_foo", 5), Lacking("a", 1))
