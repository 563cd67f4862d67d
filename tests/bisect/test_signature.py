"""Signatures: equal for the same defect, different for another."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.bisect.processes import Ended
from conformance.bisect.search import Answer
from conformance.bisect.signature import ProbeOutcome, Signature, answer, normalised, of_observation, of_script
from conformance.records import CaseFailure, Death, DeathFinding, Mismatch, Observation, PlacedArgument, SanitizerReport
from conformance.vocabulary import CellId, Check, Status
from tests.records import elements

CELL = CellId("demo", "neg", "float32", "contiguous")
CASE = f"{CELL}#sample"
ARGUMENTS = (PlacedArgument("self", "float32", "contiguous", (6,), (1,), 0, 6),)


def observed(status: Status, *mismatches: Mismatch, **more: Any) -> Observation:
    failures = (CaseFailure(CASE, mismatches, ARGUMENTS),) if mismatches else ()
    return Observation(CELL, "native", status, 1, **{"failures": failures, **more})


def signature(*mismatches: Mismatch, status: Status = Status.FAIL, **more: Any) -> Signature:
    found = of_observation(observed(status, *mismatches, **more), CASE, 1.0, "demo").signature
    assert found
    return found


def errors(message: str, kind: str = "RuntimeError") -> Mismatch:
    raised = {"type": kind, "message": message}
    return Mismatch(Check.ERROR_PARITY, "", {"kind": "errors", "device": raised, "cpu": None})


def metadata(check: Check, device: Any, cpu: Any) -> Mismatch:
    facts = {"kind": "metadata", "what": check.value, "device": device, "cpu": cpu}
    return Mismatch(check, "result", facts)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("differs at 3: 1.5e-3", "differs at 12: -0.25"),
        ("pointer 0x7ffe12 is gone", "pointer 0x55aa is gone"),
        ("/a/b/neg.cpp:12: broke", "/other/place/neg.cpp:98: broke"),
        ("got nan, expected 3", "got inf, expected 4"),
    ],
)
def test_a_signature_has_no_facts_that_vary_between_runs(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_words_are() -> None:
    assert normalised("expected float32") != normalised("expected float64")
    assert normalised("int8 is not handled") != normalised("int16 is not handled")


ALIKE = [
    (elements((0, 1)), elements((1, 2), wrong=5, device="nan", float64=2.5)),
    (elements(bound={"exact": True, "signed_zeros": True}), elements(bound={"exact": False, "multiple": 4.0})),
    (errors("index 3 is out of range"), errors("index 12 is out of range")),
    (metadata(Check.STRIDE, [1, 2], [3, 1]), metadata(Check.STRIDE, [1, 4], [5, 1])),
]


@pytest.mark.parametrize(("one", "other"), ALIKE, ids=["elements", "bounds", "errors", "strides"])
def test_failures_that_differ_in_numbers_alone_are_the_same(one: Mismatch, other: Mismatch) -> None:
    assert signature(one) == signature(other)


UNLIKE = [
    (elements(), elements(subject="result")),
    (elements(), elements(dtype="float64")),
    (elements(), metadata(Check.STRIDE, [1, 2], [3, 1])),
    (errors("int8 is not handled"), errors("int16 is not handled")),
    (errors("no"), errors("no", "ValueError")),
    (metadata(Check.DTYPE, "float64", "float32"), metadata(Check.DTYPE, "float16", "float32")),
]


@pytest.mark.parametrize(
    ("one", "other"), UNLIKE, ids=["subject", "dtype", "check", "message", "type of error", "another dtype"]
)
def test_failures_that_differ_in_a_name_are_not_the_same(one: Mismatch, other: Mismatch) -> None:
    assert signature(one) != signature(other)


def test_a_signature_has_all_findings_of_a_case_and_no_arguments() -> None:
    both = signature(elements(), metadata(Check.STRIDE, [1], [2]))
    assert both != signature(elements())
    assert both == Signature(
        "fail", findings=(("value", "self", "elements", "float32"), ("stride", "result", "metadata", "stride"))
    )
    assert both.text() == "fail: value self elements float32; stride result metadata stride"


def test_findings_of_another_check_have_another_signature() -> None:
    value, stride = (
        of_observation(observed(Status.FAIL, found), CASE, 1.0, "demo")
        for found in (elements(), metadata(Check.STRIDE, [1, 2], [3, 1]))
    )
    assert answer(stride, value.signature) is Answer.UNKNOWN
    assert answer(stride, value.signature, any_failure=True) is Answer.BAD


def test_a_crash_s_signature_has_signal_side_and_sanitizer_error() -> None:
    died = [
        Death("SIGSEGV", phase="device", log="one stack"),
        Death("SIGSEGV", phase="device", log="another", finding=DeathFinding("flaky", (2, 5))),
        Death("SIGSEGV", phase="cpu"),
        Death("SIGABRT", phase="device", report=SanitizerReport("AddressSanitizer", "double-free", function="fill")),
    ]
    seen = [signature(status=Status.CRASH, failures=(CaseFailure(CASE, death=d),)) for d in died]
    assert seen[0] == seen[1] == Signature("crash", "SIGSEGV device")
    assert seen[2] != seen[0]
    assert seen[3] == Signature("crash", "SIGABRT device double-free fill")


def test_a_run_that_cannot_be_judged_has_the_answer_unknown() -> None:
    broke = observed(Status.ERROR, failures=(CaseFailure(CASE, trouble="Traceback"),))
    for seen in (observed(Status.NOT_REACHED, reason="the gate is broken"), broke):
        assert answer(of_observation(seen, CASE, 1.0, "demo"), None) is Answer.UNKNOWN


def test_an_op_without_support_can_be_the_failure_but_is_no_other() -> None:
    seen = of_observation(observed(Status.UNSUPPORTED, reason="no kernel for float16"), CASE, 1.0, "demo")
    assert answer(seen, None) is Answer.BAD
    assert answer(seen, seen.signature) is Answer.BAD
    assert answer(seen, Signature("fail"), any_failure=True) is Answer.UNKNOWN


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
    assert of_script(Ended(1, "sum is 3", "", 1.0)).signature == Signature("exit code 1", said="sum is N")


def test_a_pass_is_good_whatever_is_looked_for() -> None:
    assert answer(ProbeOutcome(True, None, True, "", 0.1), None) is Answer.GOOD
