"""A failing case as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import expecttest
import pytest
import torch

from conformance.corpus.model import Arg, ComplexArg, DtypeArg, EnumArg, GeneratorArg
from conformance.explain import describe
from conformance.judging import compare
from conformance.judging.closeness import Closeness
from conformance.plan.arguments import placed_arguments
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.records import CaseFailure, Death, DeathFinding, LeftOut, Mismatch, SanitizerReport
from conformance.vocabulary import CellId, Check, Fact, Status
from tests.records import elements, observed
from tests.samples import sample, slot
from tests.two_sides import case_of, judge


def message(*args: Arg, layout: str, variant: str, dtype: str = "float32", route: str = "native") -> str:
    """The text about a case of ``masked_fill_`` in which value and gap are wrong."""
    one = sample("masked_fill_.Scalar", *args, name="own.masking.row.1f37e898")
    cell = CellId("masking", "masked_fill_.Scalar", dtype, layout)
    case = next(c for c in cases(cell, [one]) if c.variant == variant)
    value = compare.exact(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.5]]), "self")
    before = torch.zeros(16, dtype=torch.uint8)
    after = before.clone()
    after[5] = 0xFF
    gap = compare.untouched(before, before, after, torch.zeros(16, dtype=torch.bool), True, "self")
    assert value is not None
    assert gap is not None
    found = CaseFailure(case.id, (value, gap), placed_arguments(case), calls=("masked_fill_", "fill_"))
    return describe.failure(found, cell, route, "mine")


def arguments(case: Case) -> str:
    return "\n".join(map(describe.argument, placed_arguments(case)))


def said(mismatches: Iterable[Mismatch]) -> str:
    return "\n".join(f"{m.check}: {describe.mismatch(m)}" for m in mismatches)


class TestFailure(expecttest.TestCase):
    def test_each_argument_each_difference_and_how_to_repeat_it(self) -> None:
        self_, mask = slot(0, "self", (2, 3), written=True), slot(1, "mask", (2, 3), "bool")
        self.assertExpectedInline(
            message(self_, mask, -1.5, layout="offset_gap", variant="self"),
            """\
masked_fill_.Scalar (native) in float32, layout offset_gap on self
  self: float32 offset_gap: size [2, 3], stride [5, 1], offset 5, storage 17
  mask: bool contiguous: size [2, 3], stride [3, 1], offset 0, storage 6
  arg 2: -1.5
  value: self: 1 of 2 elements differ, first at [0, 1]: device 2.5, CPU 2.0; distance 0.5 (2.1e+06 ULP); must be equal bit for bit
  untouched: self: 1 bytes outside the view changed, first at byte 5 of 16: 0xff, not 0x00
  kernels: masked_fill_ -> fill_
  repeat: pytest --pyargs conformance --backend mine --case 'ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#own.masking.row.1f37e898@self'
  script: conformance repro --backend mine 'ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#own.masking.row.1f37e898@self'""",  # noqa: E501  # as it is printed
        )

    def test_arguments_that_share_a_storage_say_so(self) -> None:
        a, b = slot(0, "self", (2,)), slot(1, "other", (2,))
        case = next(c for c in cases(CellId("f", "add.Tensor", "bfloat16", "aliased"), [sample("add.Tensor", a, b)]))
        self.assertExpectedInline(
            arguments(case),
            """\
self: bfloat16 contiguous: size [2], stride [1], offset 0, storage 2
other: bfloat16 contiguous: size [2], stride [1], offset 0, storage 2, over the storage of self""",
        )

    def test_an_overlapping_view_shows_its_offset_in_the_shared_storage(self) -> None:
        a, b = slot(0, "self", (2,)), slot(1, "other", (2,))
        of = cases(CellId("f", "add.Tensor", "bfloat16", "aliased"), [sample("add.Tensor", a, b)])
        self.assertExpectedInline(
            arguments(next(c for c in of if "~" in c.variant)),
            """\
self: bfloat16 contiguous: size [2], stride [1], offset 0, storage 3
other: bfloat16 contiguous: size [2], stride [1], offset 1, storage 3, over the storage of self""",
        )

    def test_arguments_that_are_no_tensors_are_written_as_one_would_type_them(self) -> None:
        tensors = (slot(0, "tensors[0]", (2,)), slot(1, "tensors[1]", ()))
        args: tuple[Arg, ...] = (
            tensors,
            None, True, 2, -0.5, "mean", (1, 2), DtypeArg(None), DtypeArg("int8"), ComplexArg(1, -2),
            EnumArg("memory_format", "channels_last"), GeneratorArg(7),
        )  # fmt: skip
        one = replace(sample("hand", *args), tensors=tensors)
        case = cases(CellId("f", "hand", "float32", "contiguous"), [one])[0]
        self.assertExpectedInline(
            arguments(case),
            """\
tensors[0]: float32 contiguous: size [2], stride [1], offset 0, storage 2
tensors[1]: float32 contiguous: size [], stride [], offset 0, storage 1
arg 1: None
arg 2: True
arg 3: 2
arg 4: -0.5
arg 5: 'mean'
arg 6: [1, 2]
arg 7: the cell's dtype
arg 8: torch.int8
arg 9: (1-2j)
arg 10: torch.channels_last
arg 11: a generator seeded with 7""",
        )

    def test_a_native_mismatch_shows_its_distance_from_float64_and_the_bound(self) -> None:
        cpu = torch.tensor([1.0, 2.0, 3.0])
        device = torch.tensor([1.0, 2.0, 3.5])
        rule = Closeness(multiple=2, ulps=4, accumulates=True, terms=9)
        found = compare.close(cpu, device, cpu.double() + 1e-9, rule, "result")
        assert found is not None
        self.assertExpectedInline(
            describe.mismatch(found),
            """result: 1 of 3 elements differ, first at [2]: device 3.5, CPU 3.0, float64 3.000000001; distance 0.5 (1.4e+06 ULP); allowed: 2 x CPU's own distance from float64 + 4 ULP of float32 of the largest element, 9 terms""",  # noqa: E501  # as it is printed
        )

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


# Each kind of finding and its text; the facts are those that the judge records.
_BOUND = {"exact": False, "multiple": 4.0, "ulps": 8.0, "dtype": "float16", "magnitude": 0.0, "accumulates": False,
          "terms": 1, "spread": False}  # fmt: skip
_ERROR = {"type": "ValueError", "message": "not today"}
_LOST = {"bytes": 40, "objects": 1, "at": ["a.cpp:5 lose", "a.cpp:9 main"], "trouble": ""}
# As judging/patterns.py makes one.
PATTERN = {
    "wrong": 2, "of": 6, "first": 4, "last": 5, "where": {"kind": "flat", "size": 6, "from": 4, "to": 5},
    "values": {"kind": "zero"},
}  # fmt: skip

_TEXTS: list[tuple[Fact, dict[str, object], str]] = [
    (Fact.METADATA, {"what": "offset", "device": 1, "cpu": 0}, "storage offset is 1 on the device, 0 on CPU"),
    (Fact.METADATA, {"what": "conj", "device": False, "cpu": True}, "conj bit is False on the device, True on CPU"),
    (Fact.PLAIN, {"device": "2", "cpu": "nan"}, "2 on the device, nan on CPU"),
    (Fact.BYTES, {"bytes": 3, "byte": 5, "of": 16, "before": 0, "device": 255},
     "3 bytes of an argument that the schema does not mark as written changed, first at byte 5 of 16: 0xff, not 0x00"),
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
    (Fact.ALIASING, {"device": None, "cpu": "self"},
     "has a storage of its own on the device, shares the storage of self on CPU"),
    (Fact.IDENTITY, {"argument": "self", "device": False, "cpu": True},
     "is another tensor over the storage of self on the device, the argument self itself on CPU"),
    (Fact.SHARED_RESULTS, {"device": "result[0]", "cpu": None},
     "shares the storage of result[0] on the device, has a storage of its own on CPU"),
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
    (Fact.ELEMENTS, {**elements().facts, "pattern": PATTERN},
     ("2 of 6 elements differ, first at [0, 1]: device 1.5, CPU 2.5; wrong: all with flat index >= 4; all zero; "
     "distance 1 (3.36e+06 ULP); must be equal bit for bit")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "facts", "text"), _TEXTS, ids=[str(kind) for kind, _, _ in _TEXTS])
def test_a_finding_of_each_kind_as_text(kind: Fact, facts: dict[str, object], text: str) -> None:
    found = Mismatch(Check.VALUE, "self", {**facts, "kind": kind.value})
    assert describe.mismatch(found) == f"self: {text}"
    assert describe.mismatch(replace(found, subject="")).endswith(text)


def test_no_kind_of_finding_is_without_a_text() -> None:
    assert {kind for kind, _, _ in _TEXTS} == set(Fact)


def test_a_finding_of_another_version_of_the_suite_is_shown_as_its_facts() -> None:
    for facts in ({"kind": "colour", "hue": 3}, {"kind": "elements"}):
        assert describe.mismatch(Mismatch(Check.VALUE, "", facts)) == json.dumps(facts)


_DEATHS = [
    (DeathFinding("steady", (5, 5)), "steady 5/5: alone in a fresh process, it dies each time"),
    (DeathFinding("flaky", (2, 5)), "flaky 2/5: alone, 2 of 5 fresh processes died"),
    (DeathFinding("ordered", (0, 5), (2, 2), 100, "X", (5, 5)),
     "crashes only after X: 5 of 5 fresh processes died so, and 0/5 without it"),
    (DeathFinding("", left_out=LeftOut.TIME), "not repeated in fresh processes: the time budget for deaths is spent"),
    (DeathFinding("", (0, 5), left_out=LeftOut.ORDER),
     "alone, 0 of 5 fresh processes died; what ran before it was not repeated: the time budget for deaths is spent"),
]  # fmt: skip


@pytest.mark.parametrize(("finding", "text"), _DEATHS, ids=[text[:12] for _, text in _DEATHS])
def test_a_death_that_was_repeated_in_fresh_processes_as_text(finding: DeathFinding, text: str) -> None:
    found = Death("SIGSEGV", phase="device", finding=finding, log="Fatal Python error\n  in f")
    first, *log = describe.death(found)
    assert first == f"the process died: SIGSEGV, on the device side; {text}"
    assert log == ["Fatal Python error", "  in f"]


def test_a_sanitizer_s_report_takes_the_place_of_the_log() -> None:
    report = SanitizerReport("AddressSanitizer", "heap-buffer-overflow", access="WRITE", size=4, stack=("a.cpp:1 f",))
    assert describe.death(Death("SIGABRT", phase="device", report=report))[1:] == [
        "AddressSanitizer: heap-buffer-overflow: WRITE of 4 bytes", "  at: a.cpp:1 f",
    ]  # fmt: skip


def test_a_hang_says_how_long_it_was_waited_for() -> None:
    assert describe.death(Death(seconds=60.0))[0] == "the process did not return within 60 s, between cases"


def excerpt(*failures: CaseFailure) -> str:
    return describe.excerpt(replace(observed("mm", status=Status.FAIL), failures=failures))


def test_an_excerpt_is_the_first_finding_on_one_line() -> None:
    leak = Mismatch(Check.LEAK, "", {"kind": "host_leak", "cells": 7, "guilty": "", "lost": [_LOST]})
    assert excerpt(CaseFailure("c", (leak, elements()))).endswith("by none of them when they run again:")
    assert excerpt(CaseFailure("c", death=Death("SIGSEGV", log="x"))) == "the process died: SIGSEGV, between cases"
    assert excerpt(CaseFailure("c", trouble="Traceback\n  in f\nKeyError: 'x'\n")) == (
        "the suite itself failed: KeyError: 'x'"
    )
    assert excerpt(CaseFailure("c", older="first\nsecond")) == "first"


def test_a_cell_without_failures_says_why_it_ended_so() -> None:
    seen = observed("mm", status=Status.NOT_REACHED, reason="the run ended")
    assert describe.observation(seen, "mine") == describe.excerpt(seen) == "the run ended"


def test_the_reason_of_a_known_failure_names_the_check() -> None:
    assert describe.ended(observed("mm", status=Status.FAIL)) == "value: result: 1.5 on the device, 2.5 on CPU"


def test_the_suite_s_own_error_is_shown_with_its_traceback() -> None:
    broken = CaseFailure("ops/x.py::mm[a-b]#s", trouble="Traceback\nKeyError: 'x'\n")
    text = describe.failure(broken, CellId("x", "mm", "a", "b"), "native", "mine")
    assert text == "the suite itself failed\nTraceback\nKeyError: 'x'"


def test_markdown_is_cut_and_cannot_end_its_block() -> None:
    seen = replace(observed("mm", status=Status.FAIL), failures=(CaseFailure("c", older="``` " * 50),))
    lines = describe.markdown(seen, "mine", 20)
    assert (lines[0], lines[-1]) == ("````text", "````")
    assert len(lines[1]) <= 20
