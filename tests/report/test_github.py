"""A run as annotations of a GitHub workflow: their text, in which no text of a result is taken for a command."""

from __future__ import annotations

from dataclasses import replace

from conformance.records import CaseFailure, Observation
from conformance.report import github
from conformance.results.expectations import KnownFailure
from conformance.vocabulary import Status
from tests.records import manifest, observed

PASSING = observed("mm")
FAILING = observed("cat", status=Status.FAIL)


def told(*cells: Observation, known: tuple[KnownFailure, ...] = ()) -> list[str]:
    return github.annotated(manifest(), cells, known).splitlines()


def test_a_run_as_expected_has_no_annotation() -> None:
    assert told(PASSING) == []
    assert told(FAILING, known=(KnownFailure(op=("cat",), reason="known"),)) == []


def test_each_cause_is_an_error_with_its_example_and_its_commands() -> None:
    (line,) = told(PASSING, FAILING)
    assert line.startswith("::error title=cat%3A 1 cell of 1 overload::cat on torch 2.8.0%0A")
    assert "cat[float32-contiguous]#s.0: " in line
    assert "%0Arepeat: " in line
    assert " --backend demo" in line


def test_no_more_errors_than_github_shows_and_a_count_of_the_rest() -> None:
    *shown, rest = told(*(observed(f"op{i}", status=Status.FAIL) for i in range(14)))
    assert len(shown) == github.SHOWN
    assert rest.startswith("::warning title=op-conformance::4 more causes")


def test_an_unexpected_pass_and_cells_that_were_not_reached_are_errors() -> None:
    passed, unreached = told(
        PASSING, observed("abs", status=Status.NOT_REACHED), known=(KnownFailure(op=("mm",), reason="was broken"),)
    )
    assert "1 cell expected to fail did not: mm[float32-contiguous]" in passed
    assert unreached == "::error title=op-conformance::1 cell not reached"


def test_no_text_of_a_result_ends_an_annotation() -> None:
    evil = "100%\r\n::warning title=a,b:c::d"
    cell = replace(FAILING, failures=(CaseFailure(evil, older=evil * 1000, older_check="value"),))
    (line,) = told(cell)
    assert line.startswith("::error title=")
    assert len(line) < 2 * github.LONGEST
    assert github.command("error", "a,b:c", "x") == "::error title=a%2Cb%3Ac::x"
    assert github.command("error", "t", "100%\n") == "::error title=t::100%25%0A"
