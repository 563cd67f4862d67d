"""The ends of observed calls, and the findings and advice that follow from them."""

from __future__ import annotations

import pytest

from conformance.aoti.ends import advice, differing, ended, findings
from conformance.aoti.model import Advice, Api, Axis, Call, End, Ended, Given, Observed

GIVEN = Given(0, (4,), (1,), 0, "float32", "cpu")
CALL = Call(Axis.STRIDE, "step2", (GIVEN, GIVEN), "y", (1,))
CHECK = "RuntimeError: input_handles[1]: unmatched stride value at 0, expected: 1, but got: 2"


def end(observed: Observed, call: Call = CALL) -> End:
    return ended(call, False, Api.CURRENT, observed).end


def detail(observed: Observed) -> str:
    return ended(CALL, False, Api.CURRENT, observed).detail


def test_outputs_of_eager_are_right() -> None:
    assert end(Observed("done")) is End.RIGHT


def test_other_outputs_are_silent_garbage() -> None:
    assert end(Observed("done", difference="output 0: shape [4], eager has [8]")) is End.GARBAGE


def test_outputs_where_eager_raises_are_silent_garbage() -> None:
    observed = Observed("done", eager_raised="RuntimeError: sizes differ")
    assert end(observed) is End.GARBAGE
    assert detail(observed) == "outputs, where eager raises RuntimeError: sizes differ"


def test_an_error_that_names_the_input_is_clear() -> None:
    assert end(Observed("call", raised=CHECK)) is End.CLEAR_ERROR


def test_an_error_that_is_printed_is_clear_too() -> None:
    observed = Observed("call", raised="RuntimeError: API call failed", printed=f"warning\nError: {CHECK}\n")
    assert end(observed) is End.CLEAR_ERROR


def test_an_error_that_names_another_input_is_not_clear() -> None:
    assert end(Observed("call", raised=CHECK.replace("[1]", "[0]"))) is End.OTHER_ERROR


def test_an_error_of_a_kernel_is_not_clear() -> None:
    assert end(Observed("call", raised="RuntimeError: mat1 and mat2 must have the same dtype")) is End.OTHER_ERROR


def test_the_number_of_inputs_is_clear_for_a_wrong_number_alone() -> None:
    raised = Observed("call", raised="RuntimeError: expected inputs vector size to be 2, but got 3")
    assert end(raised, Call(Axis.NUMBER, "3 of 2", (GIVEN,) * 3, changed=(2,))) is End.CLEAR_ERROR
    assert end(raised) is End.OTHER_ERROR


def test_a_device_that_cannot_be_loaded_for_is_named() -> None:
    raised = Observed("load", raised="RuntimeError: Unsupported device meta")
    assert end(raised, Call(Axis.LOAD, "meta", (GIVEN,), load_device="meta")) is End.CLEAR_ERROR


@pytest.mark.parametrize("phase", ["load", "call", "compare"])
def test_a_death_in_the_package_or_in_its_outputs_is_a_crash(phase: str) -> None:
    assert end(Observed(phase, died="SIGSEGV")) is End.CRASH


def test_a_call_without_end_is_a_crash() -> None:
    assert end(Observed("call", died="timeout")) is End.CRASH
    assert detail(Observed("call", died="timeout")) == "no end in time in the phase 'call'"


@pytest.mark.parametrize("phase", ["prepare", "eager"])
def test_a_death_before_the_package_is_called_is_not_judged(phase: str) -> None:
    assert end(Observed(phase, died="SIGABRT")) is End.NOT_JUDGED
    assert end(Observed(phase)) is End.NOT_JUDGED


def test_garbage_and_crashes_are_findings_alone() -> None:
    assert {e for e in End if e.is_finding} == {End.GARBAGE, End.CRASH}


@pytest.mark.parametrize(
    ("unset", "checked", "expected"),
    [
        (End.GARBAGE, End.CLEAR_ERROR, Advice.SET_SWITCH),
        (End.CRASH, End.OTHER_ERROR, Advice.SET_SWITCH),
        (End.GARBAGE, End.GARBAGE, Advice.NOT_CHECKED),
        (End.RIGHT, End.CRASH, Advice.NOT_CHECKED),
        (None, End.GARBAGE, Advice.NOT_CHECKED),
        (End.GARBAGE, None, Advice.NOT_TRIED),
        (End.RIGHT, End.CLEAR_ERROR, Advice.STRICTER),
        (End.RIGHT, End.RIGHT, Advice.NONE),
        (End.OTHER_ERROR, End.CLEAR_ERROR, Advice.NONE),
    ],
)
def test_advice_follows_from_both_ends(unset: End | None, checked: End | None, expected: Advice) -> None:
    assert advice(Axis.STRIDE, unset, checked) is expected


def test_a_package_that_is_wrong_for_its_own_examples_is_said_to_be_wrong() -> None:
    assert advice(Axis.NOTHING, End.GARBAGE, End.GARBAGE) is Advice.WRONG_PACKAGE
    assert advice(Axis.NOTHING, End.RIGHT, End.CLEAR_ERROR) is Advice.WRONG_PACKAGE
    assert advice(Axis.NOTHING, End.RIGHT, End.RIGHT) is Advice.NONE


def test_the_ends_of_a_mismatch_are_one_finding() -> None:
    every = [
        Ended(CALL, False, Api.CURRENT, End.GARBAGE, "values differ"),
        Ended(CALL, True, Api.CURRENT, End.CLEAR_ERROR, "input_handles[1]"),
        Ended(CALL, False, Api.DEPRECATED, End.CRASH),
    ]
    (found,) = findings(every)
    assert (found.subject, found.unset, found.set) == ("y", End.GARBAGE, End.CLEAR_ERROR)
    assert (found.advice, found.detail) == (Advice.SET_SWITCH, "values differ")


def test_calls_that_end_in_another_way_by_the_deprecated_api_are_listed() -> None:
    every = [Ended(CALL, checked, api, End.RIGHT) for api in Api for checked in (False, True)]
    assert differing(every) == ()
    every[-1] = Ended(CALL, True, Api.DEPRECATED, End.CRASH)
    (found,) = differing(every)
    assert (found.checked, found.current, found.deprecated) == (True, End.RIGHT, End.CRASH)
