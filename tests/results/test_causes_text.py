"""Causes as the text of a run's end."""

from __future__ import annotations

import expecttest

from conformance.records import Observation
from conformance.results import causes, causes_text
from conformance.vocabulary import Status
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


def test_no_failure_has_no_text() -> None:
    assert text(observed("mm")) == ""


def test_causes_beyond_those_shown_are_counted() -> None:
    many = [observed(f"op{n:02}", status=Status.FAIL) for n in range(causes_text.SHOWN + 2)]
    lines = text(*many).splitlines()
    assert lines[0] == f"causes of {len(many)} failing cells: {len(many)} kernels"
    assert lines[-1] == "  ... and 2 more"
