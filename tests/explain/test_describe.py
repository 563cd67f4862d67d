"""A failing case as text."""

from __future__ import annotations

from dataclasses import replace

import expecttest
import pytest
import torch

from conformance.corpus.model import Arg, ComplexArg, DtypeArg, EnumArg, GeneratorArg
from conformance.explain import describe
from conformance.judging import compare
from conformance.plan.arguments import placed_arguments
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.records import CaseFailure, Death, DeathFinding, LeftOut, Mismatch, SanitizerReport
from conformance.vocabulary import CellId, Check, Status
from tests.records import elements, observed
from tests.samples import sample, slot


def message(*args: Arg, layout: str, variant: str, dtype: str = "float32", route: str = "native") -> str:
    """Return the text about a case of ``masked_fill_`` with a wrong value and a wrong gap."""
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


def test_the_end_of_a_walk_shows_its_lines() -> None:
    found = Death("SIGSEGV", phase="device", lines=("with suppress(Left):", "    x.record_stream(s)"))
    assert describe.death(found)[1:] == [
        "the last of these lines ran:", "  with suppress(Left):", "      x.record_stream(s)",
    ]  # fmt: skip


def excerpt(*failures: CaseFailure) -> str:
    return describe.excerpt(replace(observed("mm", status=Status.FAIL), failures=failures))


def test_an_excerpt_is_the_first_finding_on_one_line() -> None:
    lost = {"bytes": 40, "objects": 1, "at": ["a.cpp:5 lose", "a.cpp:9 main"], "trouble": ""}
    leak = Mismatch(Check.LEAK, "", {"kind": "host_leak", "cells": 7, "guilty": "", "lost": [lost]})
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
