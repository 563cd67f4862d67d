"""Other plugins that order, mark and deselect the cells of a run."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

CPU = ("--backend", "torch:cpu", "-q", "-p", "no:cacheprovider", "--collect-only")
SOME = ("--pyargs", "conformance.ops.masking", *CPU, "-m", "float32 and contiguous")
ALL = ("--pyargs", "conformance", *CPU, "--tier", "smoke")
REVERSES = """
def pytest_collection_modifyitems(items):
    items.reverse()
"""
TAKES_HALF = """
def pytest_collection_modifyitems(config, items):
    out, items[:] = items[::2], items[1::2]
    config.hook.pytest_deselected(items=out)
"""


def collected(pytester: pytest.Pytester, plugin: str) -> list[str]:
    """Return the cells that a run with a plugin collects, in order."""
    pytester.makepyfile(other=plugin)
    result = pytester.runpytest_subprocess(*SOME, "-p", "other")
    assert result.ret == 0
    return [line for line in result.outlines if "::" in line]


def test_another_plugin_orders_and_deselects_cells_without_a_keyword(pytester: pytest.Pytester) -> None:
    plain = collected(pytester, "")
    assert len(plain) > 10
    assert collected(pytester, REVERSES) == plain[::-1]
    assert collected(pytester, TAKES_HALF) == plain[1::2]


def test_a_plugin_takes_no_cells_from_a_run_of_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(other=TAKES_HALF)
    result = pytester.runpytest_subprocess(*ALL, "-p", "other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: a plugin (one of *other*) deselected * cells*"])


def test_a_plugin_may_order_a_run_of_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(other=REVERSES)
    result = pytester.runpytest_subprocess(*ALL, "-p", "other")
    assert result.ret == 0
    first = next(line for line in result.outlines if "::" in line)
    assert first.startswith("scenarios/")  # the last directory without the plugin
