"""Signatures: equal for the same defect, different for another."""

from __future__ import annotations

import pytest

from conformance.bisect.processes import Ended
from conformance.bisect.search import Answer
from conformance.bisect.signature import Outcome, Signature, answer, normalised, of_observation, of_script
from conformance.vocabulary import CaseFailure, CellId, Observation, Status

CELL = CellId("demo", "neg", "float32", "contiguous")
CASE = f"{CELL}#sample"


def observed(status: Status, check: str = "value", message: str = "", **more: str) -> Observation:
    failures = (CaseFailure(CASE, check, message),) if message else ()
    return Observation(CELL, "native", status, 1, failures, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("differs at 3: 1.5e-3", "differs at 12: -0.25"),
        ("pointer 0x7ffe12 is gone", "pointer 0x55aa is gone"),
        ("/a/b/neg.cpp:12: broke", "/other/place/neg.cpp:98: broke"),
        ("got nan, expected 3", "got inf, expected 4"),
    ],
)
def test_what_changes_from_run_to_run_is_no_part_of_it(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_words_are() -> None:
    assert normalised("expected float32") != normalised("expected float64")
    assert normalised("int8 is not handled") != normalised("int16 is not handled")


def test_arguments_and_how_to_repeat_it_are_no_part_of_it() -> None:
    message = "neg (native) in float32\n  self: float32 size [{0}]\n  value: result: {0} differ\n  repeat: pytest {0}"
    outcomes = [of_observation(observed(Status.FAIL, message=message.format(n)), CASE, 1.0) for n in (1, 2)]
    assert outcomes[0].signature == outcomes[1].signature == Signature("fail", "value", "value: result: N differ")


def test_another_check_is_another_failure() -> None:
    value, stride = (
        of_observation(observed(Status.FAIL, check, f"x\n  {check}: result"), CASE, 1.0)
        for check in ("value", "stride")
    )
    assert answer(stride, value.signature) is Answer.UNKNOWN
    assert answer(stride, value.signature, any_failure=True) is Answer.BAD


def test_a_crash_is_known_by_its_signal() -> None:
    seen = observed(Status.CRASH, "", "the process died: SIGSEGV, on the device side\nstack", signal="SIGSEGV")
    assert of_observation(seen, CASE, 1.0).signature == Signature(
        "crash", "SIGSEGV", "the process died: SIGSEGV, on the device side"
    )


def test_what_cannot_be_judged_says_nothing() -> None:
    for seen in (observed(Status.NOT_REACHED, reason="the gate is broken"), observed(Status.ERROR, "", "broke")):
        assert answer(of_observation(seen, CASE, 1.0), None) is Answer.UNKNOWN


def test_an_op_without_support_can_be_the_failure_but_is_no_other() -> None:
    seen = of_observation(observed(Status.UNSUPPORTED, reason="no kernel for float16"), CASE, 1.0)
    assert answer(seen, None) is Answer.BAD
    assert answer(seen, seen.signature) is Answer.BAD
    assert answer(seen, Signature("fail", "value", ""), any_failure=True) is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (Ended(0, "fine", "", 1.0), Answer.GOOD),
        (Ended(125, "", "cannot build", 1.0), Answer.UNKNOWN),
        (Ended(1, "", "Traceback\nAssertionError: 3 != 4", 1.0), Answer.BAD),
        (Ended(1, "", "ImportError: no numpy", 1.0), Answer.UNKNOWN),
        (Ended(2, "", "AssertionError: 3 != 4", 1.0), Answer.UNKNOWN),
        (Ended(-11, "", "", 1.0), Answer.UNKNOWN),
        (Ended(-9, "", "", 1.0, late=True), Answer.UNKNOWN),
    ],
)
def test_a_script_is_judged_by_its_exit_code_and_its_last_line(ended: Ended, said: Answer) -> None:
    wanted = of_script(Ended(1, "", "AssertionError: 1 != 2", 1.0)).signature
    assert answer(of_script(ended), wanted) is said


def test_a_script_that_says_nothing_on_stderr_is_known_by_stdout() -> None:
    assert of_script(Ended(1, "sum is 3", "", 1.0)).signature == Signature("exit code 1", "", "sum is N")


def test_a_pass_is_good_whatever_is_looked_for() -> None:
    assert answer(Outcome(True, None, True, "", 0.1), None) is Answer.GOOD
