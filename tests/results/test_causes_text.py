"""Causes in the text at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import expecttest

from conformance.records import Observation
from conformance.results import causes, causes_text
from conformance.vocabulary import CellId, Status
from tests.records import observed


def text(*seen: Observation) -> str:
    return causes_text.text(causes.of_run(seen), "demo")


class TestText(expecttest.TestCase):
    def test_a_cause_has_what_it_explains_what_tells_its_cells_and_commands(self) -> None:
        self.assertExpectedInline(
            text(observed("mm"), observed("mm", "bool-step2", Status.FAIL)),
            """\
causes of 1 failing cell: 1 kernel
  mm: 1 cell of 1 overload (mm)
    dtype: fails in bool; all pass in float32
    layout: fails in step2; all pass in contiguous
    example: mm[bool-step2]#s.0
    repeat: pytest --pyargs conformance --backend demo --case 'mm[bool-step2]#s.0'
    triage: conformance triage --backend demo 'mm[bool-step2]#s.0'""",
        )


def test_a_cell_that_names_no_case_has_no_commands() -> None:
    assert text(observed("mm", status=Status.CRASH, signal="SIGSEGV")).splitlines()[1:] == [
        "  mm: 1 cell of 1 overload (mm)",
        "    example: ops/masking.py::mm[float32-contiguous]",
    ]


def test_a_cause_that_is_the_fallback_says_which_check_fails() -> None:
    lines = text(observed("mm", status=Status.FAIL, route="fallback")).splitlines()
    assert lines[1:3] == ["  the fallback: 1 cell of 1 overload (mm)", "    all fail by: value"]


def differs(overload: str, check: str = "value", route: str = "fallback", cell: CellId | None = None) -> Observation:
    seen = observed(overload, status=Status.FAIL, checks=(check,), route=route)
    return replace(seen, cell=cell) if cell else seen


def test_what_is_to_mend_counts_the_fallback_once_and_programs_apart() -> None:
    fallback = [differs("mm"), differs("bmm", "stride"), differs("svd", "stride"), differs("qr", "aliasing")]
    kernels = [differs("neg", route="native"), differs("abs", "stride", "native"), differs("abs.out", route="native")]
    programs = [differs(n, route="", cell=CellId.of_scenario(f"masks:{n}")) for n in ("fill", "copy")]
    assert text(*fallback[:1]).splitlines()[0] == "causes of 1 failing cell: the fallback"
    assert text(*kernels).splitlines()[0] == "causes of 3 failing cells: 2 kernels"
    assert text(*programs[:1]).splitlines()[0] == "causes of 1 failing cell: 1 program by itself"
    assert text(*fallback, *kernels, *programs).splitlines()[0] == (
        "causes of 9 failing cells: 2 kernels, the fallback (in 3 ways), 2 programs by themselves"
    )


def test_no_two_causes_of_a_run_have_one_name() -> None:
    programs = [differs(n, cell=CellId.of_scenario(f"masks:{n}")) for n in ("fill", "copy")]
    found = causes.of_run([differs("mm"), differs("bmm", "stride"), differs("neg", route="native"), *programs])
    assert sorted(map(causes_text.name, found)) == [
        "neg", "the fallback (stride)", "the fallback (value)", "the fallback (value, masks:copy)",
        "the fallback (value, masks:fill)",
    ]  # fmt: skip


def test_no_failure_has_no_text() -> None:
    assert text(observed("mm")) == ""


def test_causes_beyond_those_shown_are_counted() -> None:
    many = [observed(f"op{n:02}", status=Status.FAIL) for n in range(causes_text.SHOWN + 2)]
    lines = text(*many).splitlines()
    assert lines[0] == f"causes of {len(many)} failing cells: {len(many)} kernels"
    assert lines[-1] == "  ... and 2 more"
