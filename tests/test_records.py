"""Conversion of records to JSON and back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.records import (
    Boundary,
    CaseFailure,
    Death,
    DeathFinding,
    LeftOut,
    Mismatch,
    PlacedArgument,
    Repeats,
    Repetition,
    SanitizerReport,
    kind_of,
)
from conformance.vocabulary import Check, Fact, Status

TEXT = st.text(max_size=8)
COUNT = st.integers(0, 9)
PAIR = st.tuples(COUNT, COUNT)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
SIZES = st.lists(COUNT, max_size=3).map(tuple)
JSON = st.recursive(st.none() | st.booleans() | COUNT | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3)


def argument(**facts: Any) -> PlacedArgument:
    return PlacedArgument(**facts)


ARGUMENTS = st.builds(
    argument, name=TEXT, dtype=TEXT, layout=TEXT, size=SIZES, stride=SIZES, offset=COUNT, storage=COUNT, bit=TEXT,
    shared_with=TEXT, same_as=TEXT, text=TEXT,
)  # fmt: skip
MISMATCHES = st.builds(
    lambda check, subject, kind, facts: Mismatch(check, subject, {**facts, "kind": kind.value}),
    st.sampled_from(Check), TEXT, st.sampled_from(Fact), st.dictionaries(TEXT, JSON, max_size=3),
)  # fmt: skip
REPORTS = st.builds(
    SanitizerReport, TEXT, TEXT, TEXT, TEXT, COUNT, TEXT, TEXT, TEXT, TEXTS, TEXTS, TEXTS, TEXTS
)  # fmt: skip
FINDINGS = st.builds(DeathFinding, TEXT, PAIR, PAIR, COUNT, TEXT, PAIR, st.sampled_from(LeftOut), TEXT)
DEATHS = st.builds(Death, TEXT, st.floats(0, 9), TEXT, st.none() | FINDINGS, st.none() | REPORTS, TEXT)
BOUNDARIES = st.builds(Boundary, COUNT, COUNT, COUNT, COUNT, st.booleans(), SIZES)
REPETITIONS = st.builds(Repetition, st.sampled_from(Repeats), PAIR, TEXTS, PAIR, st.sampled_from(LeftOut), TEXT)
FAILURES = st.builds(
    CaseFailure, TEXT, st.lists(MISMATCHES, max_size=2).map(tuple), st.lists(ARGUMENTS, max_size=2).map(tuple),
    st.none() | DEATHS, TEXTS, TEXT, boundary=st.none() | BOUNDARIES, repetition=st.none() | REPETITIONS,
)  # fmt: skip


@settings(deadline=None)
@given(FAILURES)
def test_a_failure_comes_back_from_json(failure: CaseFailure) -> None:
    assert CaseFailure.from_json(json.loads(json.dumps(failure.to_json(), allow_nan=False))) == failure


def test_the_check_of_a_failure_is_that_of_its_first_finding() -> None:
    found = tuple(Mismatch(check, "", {}) for check in (Check.STRIDE, Check.VALUE))
    assert CaseFailure("c", found).check == "stride"
    assert CaseFailure("c", death=Death("SIGSEGV")).check == ""


def test_the_form_that_crosses_processes_is_made_of_plain_values() -> None:
    death = Death("SIGSEGV", finding=DeathFinding("", left_out=LeftOut.TIME))
    found = CaseFailure("c", death=death).to_json()["death"]["finding"]["left_out"]
    assert type(found) is str  # pytest-xdist accepts no subclass of str
    for death in (Death(), Death("SIGSEGV", lines=("x = 1", "f(x)"))):
        assert CaseFailure.from_json(CaseFailure("c", death=death).to_json()).death == death


def test_empty_fields_of_a_record_are_not_stored() -> None:
    record = CaseFailure("c", arguments=(PlacedArgument("arg 1", text="2"),)).to_json()
    assert record["arguments"] == [{"name": "arg 1", "text": "2"}]


def test_cells_that_end_alike_are_of_one_kind() -> None:
    assert kind_of(Status.FAIL, ["value", "stride", "value", ""], "") == "fail (stride, value)"
    assert kind_of(Status.CRASH, [""], "SIGSEGV") == "crash (SIGSEGV)"
    assert kind_of(Status.PASS, [], "") == "pass"
    assert kind_of(Status.UNSUPPORTED, [], "SIGSEGV") == kind_of(Status.UNSUPPORTED, [], "SIGABRT") == "unsupported"
