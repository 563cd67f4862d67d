"""Cells selected with ``-m``, and the markers that pytest lists."""

from __future__ import annotations

import pytest

from conformance.plan.plan import Plan  # noqa: F401 - loads torch, so that runs within this process do not
from conformance.plugin.markers import MARKERS
from conformance.support import options
from conformance.support.exit_codes import Exit
from conformance.vocabulary import CellId

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

FAMILY = ("--pyargs", "conformance.ops.masking")
CPU = ("--backend", "torch:cpu", "-q", "-p", "no:cacheprovider")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    """Return the cells of the family ``masking`` that a session selects."""
    result = pytester.runpytest_subprocess(*FAMILY, *CPU, "--collect-only", *args)
    return [line for line in result.outlines if CellId.parse(line)]


@pytest.mark.parametrize(
    ("expression", "options_"),
    [
        ("native and float32 and expanded", ("--route", "native", "--dtypes", "float32", "--layouts", "expanded")),
        ("(composite or fallback) and masking and bool", ("--route", "composite,fallback", "--dtypes", "bool")),
    ],
)
def test_markers_select_cells_by_route_dtype_layout_and_family(
    pytester: pytest.Pytester, expression: str, options_: tuple[str, ...]
) -> None:
    backend = ("--backend", "refnpu")
    kept = collected(pytester, *backend, "-m", expression)
    assert kept
    assert kept == collected(pytester, *backend, *options_)
    assert not collected(pytester, *backend, "-m", f"({expression}) and not masking")


def test_markers_keywords_and_options_select_together(pytester: pytest.Pytester) -> None:
    others = ("-k", "masked_fill", "--tier", "smoke")
    kept = collected(pytester, "-m", "expanded", *others)
    assert kept
    assert kept == [cell for cell in collected(pytester, *others) if "-expanded]" in cell]


def test_contexts_are_selected_as_layouts_are(pytester: pytest.Pytester) -> None:
    some = ("--tier", "wide", "--dtypes", "float32")
    threads = collected(pytester, *some, "--contexts", "thread")
    assert threads
    assert all(cell.endswith("[float32-thread]") for cell in threads)
    assert threads == collected(pytester, *some, "-m", "thread") == collected(pytester, *some, "--layouts", "thread")
    plain, both = (collected(pytester, *some, "--contexts", names) for names in ("plain", "plain,thread"))
    assert plain
    assert not [cell for cell in plain if "-thread]" in cell]
    assert sorted(both) == sorted({*plain, *threads})


def test_keywords_do_not_match_the_names_of_markers(pytester: pytest.Pytester) -> None:
    assert not collected(pytester, "-k", "nativ")


def test_every_marker_can_be_named_in_an_expression() -> None:
    for name in MARKERS:
        options.markers(name, MARKERS)


def test_pytest_markers_lists_the_markers_of_the_suite(pytester: pytest.Pytester) -> None:
    said = pytester.runpytest_inprocess("--pyargs", "conformance", "--markers", "--backend", "unused").stdout.str()
    assert [name for name in MARKERS if f"@pytest.mark.{name}: cells " not in said] == []


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_strict_markers_select_the_same_cells_with_workers(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    selection = ("-m", "float32 and expanded", "-k", "masked_fill.Scalar", "--strict-markers")
    pytester.runpytest_subprocess(*FAMILY, *CPU, *selection, *workers).assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("nativ and float32", "*-m: unknown marker 'nativ'; near: native*"),
        ("native and", "*-m 'native and': expected names of markers joined by and, or, not*"),
    ],
)
def test_a_wrong_marker_expression_is_an_error_before_collection(
    pytester: pytest.Pytester, expression: str, said: str
) -> None:
    result = pytester.runpytest_inprocess(*FAMILY, *CPU, "-m", expression)
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines([said])


def test_markers_that_select_no_cell_fail_the_run(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*FAMILY, *CPU, "-m", "bool and float32")
    assert result.ret == Exit.NONE_SELECTED
    result.stdout.fnmatch_lines(["ERROR: no cell is selected by: *-m 'bool and float32'"])


def test_other_tests_of_a_session_are_selected_by_their_own_markers(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    slow: takes long\n")
    file = pytester.makepyfile("import pytest\n\n@pytest.mark.slow\ndef test_slow(): ...\n\ndef test_fast(): ...\n")
    selection = ("-m", "slow or float32 and expanded", "-k", "test_ or masked_fill.Scalar")
    result = pytester.runpytest_inprocess(*FAMILY, str(file), *CPU, *selection)
    result.assert_outcomes(passed=3, deselected=1)  # counts tests: no deselected cell is made
