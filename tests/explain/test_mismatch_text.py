"""Each kind of finding as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import expecttest
import pytest
import torch

from conformance.explain import mismatch_text
from conformance.judging import compare
from conformance.judging.closeness import Closeness
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact
from tests.records import elements
from tests.two_sides import case_of, judge


def said(mismatches: Iterable[Mismatch]) -> str:
    return "\n".join(f"{m.check}: {mismatch_text.text(m)}" for m in mismatches)


class TestMismatch(expecttest.TestCase):
    def test_a_native_mismatch_shows_its_distance_from_float64_and_the_bound(self) -> None:
        cpu = torch.tensor([1.0, 2.0, 3.0])
        device = torch.tensor([1.0, 2.0, 3.5])
        rule = Closeness(multiple=2, ulps=4, accumulates=True, terms=9)
        found = compare.close(cpu, device, cpu.double() + 1e-9, rule, "result")
        assert found is not None
        self.assertExpectedInline(
            mismatch_text.text(found),
            """result: 1 of 3 elements differ, first at [2]: device 3.5, CPU 3.0, float64 3.000000001; distance 0.5 (1.4e+06 ULP); allowed: 2 x CPU's own distance from float64 + 4 ULP of float32 of the largest element, 9 terms""",  # noqa: E501  # as it is printed
        )

    def test_the_dtype_in_which_cpu_computed_is_named_if_it_is_a_wider_one(self) -> None:
        found = elements(cpu=1.5)
        wider = replace(found, facts={**found.facts, "cpu_dtype": "float32"})
        assert ", CPU 1.5 (computed in float32)" in mismatch_text.text(wider)
        assert "computed" not in mismatch_text.text(found)

    def test_findings_about_metadata_and_aliasing_as_text(self) -> None:
        wrong = (
            lambda x: (x + 1).double(),
            lambda x: (x + 1)[:1],
            lambda x: (x + 1).t().contiguous().t(),
            lambda x: x,
        )
        found = [judge(lambda x: x + 1, w).mismatches[0] for w in wrong]
        self.assertExpectedInline(
            said(found),
            """\
dtype: result: dtype is float64 on the device, float32 on CPU
shape: result: shape is [1, 3] on the device, [2, 3] on CPU
stride: result: stride is [1, 2] on the device, [3, 1] on CPU
aliasing: result: shares the storage of self on the device, has a storage of its own on CPU""",
        )

    def test_findings_that_are_not_about_results_as_text(self) -> None:
        def refusing(x: torch.Tensor) -> torch.Tensor:
            raise ValueError("not today\nnor tomorrow")

        def writing(x: torch.Tensor) -> torch.Tensor:
            x.add_(1)
            return x

        found = [
            *judge(lambda x: x + 1, refusing).mismatches,
            *judge(lambda x: x + 1, writing).mismatches,
            *judge(lambda x: x + 1, lambda x: x.data.as_strided((1,), (1,), 0).fill_(7) * 0 + x + 1,
                   case_of("offset1")).mismatches,
        ]  # fmt: skip
        self.assertExpectedInline(
            said(found),
            """\
error_parity: the device raised ValueError: not today; CPU raised nothing
aliasing: result: shares the storage of self on the device, has a storage of its own on CPU
version: self: version counter is 1 on the device, 0 on CPU
mutation: self: 7 bytes of an argument that the schema does not mark as written changed, first at byte 2 of 24: 0x00, not 0x80
untouched: self: 4 bytes outside the view changed, first at byte 0 of 32: 0x00, not 0xff""",  # noqa: E501  # as it is printed
        )


# Each kind of finding, with facts as the judge records them, and its text.
_BOUND = {"exact": False, "multiple": 4.0, "ulps": 8.0, "dtype": "float16", "magnitude": 0.0, "accumulates": False,
          "terms": 1, "spread": False}  # fmt: skip
_ERROR = {"type": "ValueError", "message": "not today"}
_LOST = {"bytes": 40, "objects": 1, "at": ["a.cpp:5 lose", "a.cpp:9 main"], "trouble": ""}
# A pattern as judging/patterns.py makes it.
PATTERN = {
    "wrong": 2, "of": 6, "first": 4, "last": 5, "where": {"kind": "flat", "size": 6, "from": 4, "to": 5},
    "values": {"kind": "zero"},
}  # fmt: skip

_TEXTS: list[tuple[Fact, dict[str, object], str]] = [
    (Fact.METADATA, {"what": "offset", "device": 1, "cpu": 0}, "storage offset is 1 on the device, 0 on CPU"),
    (Fact.METADATA, {"what": "conj", "device": False, "cpu": True}, "conj bit is False on the device, True on CPU"),
    (Fact.PLAIN, {"device": "2", "cpu": "nan"}, "2 on the device, nan on CPU"),
    (Fact.ROUNDING, {"direction": "toward zero", "of": 1088, "mean": 0.4983, "cpu": -0.0021},
     "all 1088 elements are rounded toward zero: by 0.50 units in the last place in the mean, on CPU by -0.00"),
    (Fact.PHASES, {"other": "result[0]", "index": [0, 2]},
     "the vector at [0, 2] has another phase than that of result[0], so that their product is not CPU's"),
    (Fact.TURNED, {"index": [0, 2], "distance": 0.02, "allowed": 1.5e-5},
     "the vector at [0, 2] is 0.02 of its length from CPU's, whatever its phase; allowed: 1.5e-05"),
    (Fact.BYTES, {"bytes": 3, "byte": 5, "of": 16, "before": 0, "device": 255},
     "3 bytes of an argument that the schema does not mark as written changed, first at byte 5 of 16: 0xff, not 0x00"),
    (Fact.BYTES, {"bytes": 3, "byte": 5, "of": 16, "before": 0, "device": 255, "refused": True},
     "3 bytes changed although the call is refused, first at byte 5 of 16: 0xff, not 0x00"),
    (Fact.METADATA, {"what": "shape", "device": [3], "cpu": [0], "refused": True},
     "shape is [3] on the device, [0] on CPU, although the call is refused"),
    (Fact.COUNT, {"device": 1, "cpu": 2}, "the device returned 1 results, CPU 2"),
    (Fact.DEVICE, {"device": "cpu", "wanted": "dev:0"}, "is on cpu, not on dev:0"),
    (Fact.MEMORY_DEVICE, {"device": "dev:0", "wanted": "dev:1"},
     "says that it is on dev:1, and has its memory on dev:0"),
    (Fact.ERRORS, {"device": _ERROR, "cpu": None}, "the device raised ValueError: not today; CPU raised nothing"),
    (
        Fact.DEVICE_LOST, {"device": _ERROR},
        "after the call raised, the device cannot be used: it raised ValueError: not today",
    ),
    (
        Fact.LATE_ERROR, {"device": _ERROR},
        "the device raised ValueError: not today, when it was synchronized after the case",
    ),
    (
        Fact.UNREADABLE, {"device": _ERROR},
        "the device raised ValueError: not today, when the tensor was read after the call",
    ),
    (Fact.STORAGE, {"device": 400_000, "cpu": 24}, "lies in a storage of 400,000 bytes on the device, of 24 on CPU"),
    (Fact.ALIASING, {"device": None, "cpu": "self"},
     "has a storage of its own on the device, shares the storage of self on CPU"),
    (Fact.IDENTITY, {"argument": "self", "device": False, "cpu": True},
     "is another tensor over the storage of self on the device, the argument self itself on CPU"),
    (Fact.SHARED_RESULTS, {"device": "result[0]", "cpu": None},
     "shares the storage of result[0] on the device, has a storage of its own on CPU"),
    (Fact.NEW_STORAGE, {"device": True, "cpu": False},
     "lies in a new storage: tensors that shared the old one do not see what is written"),
    (Fact.GIVEN_TWICE, {"tensor": "result", "call": "mul (call 0)"},
     "was given memory that the result of mul (call 0) still occupies"),
    (Fact.VERSION, {"device": 1, "cpu": 0}, "version counter is 1 on the device, 0 on CPU"),
    (Fact.DAMAGE, {"line": "0x10: written past its end"}, "0x10: written past its end"),
    (Fact.DEVICE_LEAK, {"blocks": 0, "bytes": 64},
     "+0 device blocks and +64 bytes are live after the call, which should leave none"),
    (Fact.HOST_LEAK, {"cells": 7, "guilty": "", "lost": [_LOST]},
     ("host memory was lost in the batch of 7 cells that ends here, by none of them when they run again:\n"
     "  40 bytes in 1 host blocks, allocated at: a.cpp:5 lose < a.cpp:9 main")),
    (Fact.HOST_LEAK, {"cells": 7, "guilty": "a cell", "lost": [{**_LOST, "trouble": "killed"}]},
     ("host memory was lost in the batch of 7 cells that ends here, by a cell, also when it runs alone:\n"
     "  the search for leaks did not end: killed")),
    (Fact.SECOND_CALL_RAISED, {"error": _ERROR},
     "the second call raised ValueError: not today, the first did not raise"),
    (Fact.UNSTABLE, {}, "two calls with the same arguments gave different bits"),
    (Fact.FRESH_MEMORY, {"byte": 255}, "other bits when fresh device memory holds 0xFF"),
    (Fact.FRESH_MEMORY, {"byte": 123, "difference": {"kind": "plain", "device": "2", "cpu": "1"}},
     "the values follow what fresh device memory holds, 0x7B in this call: 2 on the device, 1 on CPU"),
    (Fact.SAME_DRAWS, {"seeds": 20}, "20 seeds gave the same draws"),
    (Fact.NAN_DRAWS, {}, "some draws are NaN"),
    (Fact.DRAWS, {"distance": 0.5, "allowed": 0.25, "draws": 800},
     "Kolmogorov-Smirnov distance 0.500 from CPU's draws, allowed 0.250 for 800 draws"),
    (Fact.DRAWS_AT, {"distance": 0.9, "allowed": 0.75, "draws": 40, "position": 7},
     "at flat index 7: Kolmogorov-Smirnov distance 0.900 from CPU's draws, allowed 0.750 for 40 draws"),
    (Fact.REPEATED_DRAWS, {"rows": 3, "of": 20}, "a number is drawn twice in 3 of 20 rows, never on CPU"),
    (Fact.STUCK_DRAWS, {"position": 64, "value": 0.5, "draws": 24, "others": 20, "positions": 1},
     "each of 24 calls drew 0.5 at flat index 64, CPU drew other values there 20 times"),
    (Fact.STUCK_DRAWS, {"position": 64, "value": 0.5, "draws": 24, "others": 20, "positions": 3},
     "each of 24 calls drew 0.5 at flat index 64 (and at 2 more), CPU drew other values there 20 times"),
    (Fact.TIED_DRAWS, {"first": 3, "second": 7, "length": 1, "calls": 24, "unequal": 22},
     "each of 24 calls drew one value at flat indices 3 and 7, where CPU's draws differ in 22 calls"),
    (Fact.TIED_DRAWS, {"first": 0, "second": 2, "length": 2, "calls": 24, "unequal": 22},
     "each of 24 calls drew the same 2 values from flat indices 0 and 2 on, where CPU's draws differ in 22 calls"),
    (Fact.REPEATED_BLOCK, {"first": 0, "second": 64, "calls_apart": 0, "length": 4},
     "the 4 draws from flat index 64 on repeat those from 0 on of the same call, CPU repeats no block of this length"),
    (Fact.REPEATED_BLOCK, {"first": 1, "second": 0, "calls_apart": 1, "length": 4},
     ("the 4 draws from flat index 0 on repeat those from 1 on of the seed before, CPU repeats no block of this "
      "length")),
    (Fact.FOREIGN_DRAWS, {"calls": 20, "of": 48, "cpu_calls": 0, "cpu_of": 24},
     "20 of 48 calls drew a number that CPU did not draw in that row before; of CPU's later calls 0 of 24 did"),
    (Fact.UNRELATED_DRAWS, {"other": "result[0]", "factor": "input", "multiple": 2.0, "wrong": 3, "of": 8, "index": [1],
                            "device": False, "device_other": 1.5},
     ("3 of 8 elements do not belong to result[0], which is 2 x input x this on CPU: at [1] this is False, and "
      "result[0] is 1.5")),
    (Fact.UNRELATED_DRAWS, {"other": "result[0]", "factor": None, "multiple": "2j", "wrong": 3, "of": 8, "index": [1],
                            "device": True, "device_other": 0.0},
     ("3 of 8 elements do not belong to result[0], which is 2j x this on CPU: at [1] this is True, and "
      "result[0] is 0.0")),
    (Fact.SAME_STREAM, {"calls": 24}, "24 calls gave the same draws, with no seed between them"),
    (Fact.CONTEXT, {"context": "second_device", "broken": "the call made device 1 the current one; it was 0"},
     "the call made device 1 the current one; it was 0"),
    (Fact.ROUTE, {"registered": "native", "native": 0, "fallback": 1}, "registered natively, but no native kernel ran"),
    (Fact.ROUTE, {"registered": "fallback", "native": 1, "fallback": 0},
     "served by the fallback, but the fallback did not run"),
    (Fact.PROGRAM, {"lines": ["x = 1", "assert x == 2"], "at": 1, "error": None},
     "the marked line does not hold:\n   x = 1\n-> assert x == 2"),
    (Fact.PROGRAM, {"lines": ["f()"], "at": 0, "error": _ERROR},
     "the marked line raised ValueError: not today:\n-> f()"),
    (Fact.PROGRAM, {"lines": ["f()"], "at": -1, "error": _ERROR},
     "one of these lines raised ValueError: not today:\n   f()"),
    (Fact.STATE, {"what": "the current stream", "before": 0, "after": 32},
     "the call changed the current stream: 0 before, 32 after"),
    (Fact.STATE, {"what": "CPU's generator"}, "the call draws from CPU's generator, or seeds it"),
    (Fact.ELEMENTS, {**elements().facts, "device": "nan", "absolute": "nan", "ulp": "nan"},
     "2 of 6 elements differ, first at [0, 1]: device nan, CPU 2.5; distance nan (nan ULP); must be equal bit for bit"),
    (Fact.ELEMENTS, {**elements().facts, "bound": {**_BOUND, "magnitude": 32.0}, "float64": 2.25},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5, float64 2.25; distance 1 (3.36e+06 ULP); "
     "allowed: 4 x CPU's own distance from float64 + 8 ULP of float16 of 32, the largest of the arguments")),
    (Fact.ELEMENTS, {**elements().facts, "bound": {"exact": True, "signed_zeros": True, "spread": True}},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5; distance 1 (3.36e+06 ULP); "
     "must be equal, but for what rounding of the arguments moves")),
    (Fact.ELEMENTS, {**elements().facts, "bound": {**_BOUND, "accumulates": True, "terms": 9, "neighbours": 1024.0}},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5; distance 1 (3.36e+06 ULP); allowed: 4 x CPU's own "
     "distance from float64 + 8 ULP of float16 of the largest element, at most 1024 times this one, 9 terms")),
    (Fact.ELEMENTS, {**elements().facts, "bound": {**_BOUND, "accumulates": True, "terms": 9, "steps": 4.0}},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5; distance 1 (3.36e+06 ULP); allowed: 4 x CPU's own "
     "distance from float64 + 4 ULP of float16, or 8 ULP of float32 of the largest element, 9 terms")),
    (Fact.ELEMENTS, {**elements().facts, "pattern": PATTERN},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5; wrong: all with flat index >= 4; all zero; "
     "distance 1 (3.36e+06 ULP); must be equal bit for bit")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "facts", "text"), _TEXTS, ids=[str(kind) for kind, _, _ in _TEXTS])
def test_a_finding_of_each_kind_as_text(kind: Fact, facts: dict[str, object], text: str) -> None:
    found = Mismatch(Check.VALUE, "self", {**facts, "kind": kind.value})
    assert mismatch_text.text(found) == f"self: {text}"
    assert mismatch_text.text(replace(found, subject="")).endswith(text)


def test_no_kind_of_finding_is_without_a_text() -> None:
    assert {kind for kind, _, _ in _TEXTS} == set(Fact)


def test_a_finding_of_another_version_of_the_suite_is_shown_as_its_facts() -> None:
    for facts in ({"kind": "colour", "hue": 3}, {"kind": "elements"}):
        assert mismatch_text.text(Mismatch(Check.VALUE, "", facts)) == json.dumps(facts)
