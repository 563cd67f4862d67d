"""The counts of the summary, and the text at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import expecttest

from conformance.records import Lacking, LeftOut, Repeats, Repetition
from conformance.results import summary
from conformance.results.summary import RunFacts, Target
from conformance.vocabulary import Status
from tests.records import observed

FACTS = RunFacts("demo-torch2.8-malloc-release", 6, 12.5, 20.25, 0.5, "sha256:1", "2.8.0", "g++ 12.2", "abc")
CELLS = (
    observed("mm"),
    observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL, checks=("value", "stride")),
    observed("masked_fill_.Scalar", "float32-gap", Status.FAIL, checks=("value",)),
    observed("cat", "int8-contiguous", Status.CRASH, signal="SIGSEGV"),
    observed("fft", "float32-contiguous", Status.NOT_REACHED, compared=0, cases=0, reason="needs MKL"),
    observed("fft", "float64-contiguous", Status.NOT_REACHED, compared=0, cases=0, reason="needs MKL"),
)
TARGETS = (
    Target("mm", "native"),
    Target("masked_fill_.Scalar", "native"),
    Target("cat", "fallback"),
    Target("fft", "fallback"),
    Target("qadd", "unsupported", "quantized engine"),
    Target("zeros", "composite"),
)


class TestText(expecttest.TestCase):
    def test_a_run_with_failures(self) -> None:
        made = summary.summarize(FACTS, CELLS, TARGETS)
        self.assertExpectedInline(
            summary.text(made, CELLS, "results/lane", "demo"),
            """\
causes of 3 failing cells: 2 kernels
  masked_fill_: 2 cells of 1 overload (masked_fill_.Scalar)
    example: masked_fill_.Scalar[bool-expanded]#s.0
    repeat: pytest --pyargs conformance --backend demo --case 'masked_fill_.Scalar[bool-expanded]#s.0'
    triage: conformance triage --backend demo 'masked_fill_.Scalar[bool-expanded]#s.0'
  cat: 1 cell of 1 overload (cat)
    example: ops/masking.py::cat[int8-contiguous]
failing cells by overload (3 cells, 2 overloads):
  masked_fill_.Scalar       2  value 2, stride 1; first: masked_fill_.Scalar[bool-expanded]#s.0
  cat                       1  SIGSEGV 1; first: cat[int8-contiguous]
coverage: 3 of 6 overloads compared (50.0 %): composite 0/1, fallback 1/2, native 2/2, unsupported 0/1
not reached: 3 overloads, reasons in results/lane/summary.json
lane demo-torch2.8-malloc-release: 6 cells, 8 cases
time: 12.5 s, 20.2 s of CPU, 0.5 s to collect; 60 % of the time in cells went to op calls
accounting: 6 collected = 1 pass + 2 fail + 0 error + 1 crash + 0 timeout + 0 unsupported + 2 not_reached
results: results/lane/""",
        )

    def test_a_clean_run(self) -> None:
        facts = RunFacts("demo-torch2.8-malloc-release", 1, 1.0, 1.0, 0.1, "sha256:1", "2.8.0", "g++ 12.2", "abc")
        made = summary.summarize(facts, CELLS[:1], TARGETS[:1])
        self.assertExpectedInline(
            summary.text(made, CELLS[:1], "results/lane", "demo"),
            """\
coverage: 1 of 1 overloads compared (100.0 %): native 1/1
lane demo-torch2.8-malloc-release: 1 cells, 2 cases
time: 1.0 s, 1.0 s of CPU, 0.1 s to collect; 60 % of the time in cells went to op calls
accounting: 1 collected = 1 pass + 0 fail + 0 error + 0 crash + 0 timeout + 0 unsupported + 0 not_reached
results: results/lane/""",
        )

    def test_cells_that_were_lost_are_shouted(self) -> None:
        made = summary.summarize(FACTS, CELLS[:4], TARGETS)
        self.assertExpectedInline(
            summary.text(made, (), "results/lane", "demo"),
            """\
coverage: 3 of 6 overloads compared (50.0 %): composite 0/1, fallback 1/2, native 2/2, unsupported 0/1
not reached: 3 overloads, reasons in results/lane/summary.json
lane demo-torch2.8-malloc-release: 4 cells, 8 cases
time: 12.5 s, 20.2 s of CPU, 0.5 s to collect; 60 % of the time in cells went to op calls
accounting: 6 collected = 1 pass + 2 fail + 0 error + 1 crash + 0 timeout + 0 unsupported + 0 not_reached
ERROR: accounting does not balance: 6 cells collected, 4 in the statuses: 2 lost
results: results/lane/""",
        )


def test_the_summary_has_exactly_the_agreed_fields() -> None:
    made = summary.summarize(FACTS, CELLS, TARGETS)
    assert set(made) == {
        "lane", "collected", "by_status", "coverage", "cells", "cases", "wall_s", "cpu_s", "raw_call_share",
        "collect_s", "corpus", "torch", "compiler", "backend_commit", "schemas", "lacking",
    }  # fmt: skip
    assert set(made["by_status"]) == {s.value for s in Status}
    assert (made["cells"], made["cases"], made["raw_call_share"]) == (6, 8, 0.6)


def test_an_uncompared_overload_has_its_own_reason_or_its_cells_commonest() -> None:
    missing = summary.coverage(CELLS, TARGETS)["not_reached"]
    assert missing == [
        {"overload": "fft", "reason": "needs MKL"},
        {"overload": "qadd", "reason": "quantized engine"},
        {"overload": "zeros", "reason": "no cell of it was in this run"},
    ]


def test_an_overload_of_which_one_case_was_compared_counts_by_its_route() -> None:
    figures = summary.coverage(CELLS, TARGETS)
    assert (figures["compared"], figures["total"]) == (3, 6)
    assert figures["by_route"] == {
        "composite": {"compared": 0, "total": 1},
        "fallback": {"compared": 1, "total": 2},
        "native": {"compared": 2, "total": 2},
        "unsupported": {"compared": 0, "total": 1},
    }


def test_the_end_of_a_run_names_each_overload_that_native_kernels_lack_once() -> None:
    cells = [
        observed(f"op{i}", lacking=(Lacking("_foo.out", 2), *([Lacking("arange", 40)] * (i == 5)))) for i in range(6)
    ]
    made = summary.summarize(FACTS, cells, TARGETS)
    assert made["lacking"][0] == {"overload": "arange", "cases": 40, "callers": ["op5"]}
    lines = summary.text(made, cells, "results/lane", "demo").splitlines()
    assert lines[:3] == [
        "not compared: 52 cases in which a native kernel calls an overload that the backend lacks:",
        "  arange: 40 cases of op5",
        "  _foo.out: 12 cases of op0, op1, op2, op3 and 2 more",
    ]
    assert "not compared" not in summary.text(summary.summarize(FACTS, CELLS, TARGETS), CELLS, "results/lane", "demo")


def test_accounting_balances_or_says_how_many_are_lost_or_doubled() -> None:
    made = summary.summarize(FACTS, CELLS, TARGETS)
    assert summary.imbalance(made) == ""
    assert "7 cells collected, 6 in the statuses: 1 lost" in summary.imbalance({**made, "collected": 7})
    assert "1 counted twice" in summary.imbalance({**made, "collected": 5})


def test_the_end_of_a_run_says_how_many_failures_there_was_no_time_to_repeat() -> None:
    (failure,) = CELLS[2].failures
    line = "2 failing cells were not repeated alone, or not often enough: the time budget"
    for left_out, said in ((LeftOut.TIME, True), (LeftOut.ORDER, True), (LeftOut.REPEATED, False)):
        found = replace(failure, repetition=Repetition(Repeats.UNKNOWN, left_out=left_out))
        cells = [replace(CELLS[2], failures=(found,))] * 2
        made = summary.summarize(FACTS, cells, TARGETS)
        assert (line in summary.text(made, cells, "results/lane", "demo")) is said
