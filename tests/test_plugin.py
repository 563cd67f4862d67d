"""The suite as a user runs it: options, exit codes, the account, under xdist and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.exit_codes import Exit

pytest_plugins = ["pytester"]

CPU = ("--backend", "torch:cpu", "-q", "-p", "no:cacheprovider")


def run(pytester: pytest.Pytester, *args: str, family: str = "masking") -> pytest.RunResult:
    """One family, not the whole matrix, so that collecting it takes no time."""
    return pytester.runpytest_subprocess("--pyargs", f"conformance.ops.{family}", *CPU, *args)


def summary(pytester: pytest.Pytester) -> dict[str, Any]:
    (file,) = Path(pytester.path).glob("results/*/summary.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_cells_are_selected_by_keyword_and_all_of_them_accounted_for(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-k", "masked_fill_.Scalar and float32")
    assert result.ret == Exit.OK
    found = summary(pytester)
    assert found["collected"] == sum(found["by_status"].values()) == found["by_status"]["pass"] > 5
    result.stdout.fnmatch_lines(["accounting: * collected = * pass + 0 fail + 0 error + 0 crash + *"])


def test_two_workers_see_what_one_does(pytester: pytest.Pytester) -> None:
    selection = ("-k", "masked_fill", "--tier", "smoke")
    run(pytester, *selection)
    alone = summary(pytester)
    assert run(pytester, *selection, "-n", "2").ret == Exit.OK
    together = summary(pytester)
    for key in ("collected", "by_status", "coverage", "cells", "cases"):
        assert alone[key] == together[key]


def test_the_summary_holds_every_field(pytester: pytest.Pytester) -> None:
    run(pytester, "-k", "masked_fill.Scalar and float32-contiguous")
    assert set(summary(pytester)) == {
        "lane", "collected", "by_status", "coverage", "cells", "cases", "wall_s", "cpu_s", "raw_call_share",
        "collect_s", "corpus", "torch", "compiler", "backend_commit",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--dtypes", "flaot32"), "*--dtypes: unknown dtype 'flaot32'; near: float32*"),
        (("--layouts", "expandd"), "*--layouts: unknown layout 'expandd'; near: expanded*"),
        (("--route", "nativ"), "*--route: unknown route 'nativ'; near: native*"),
        (("--tier", "smok"), "*--tier: unknown tier 'smok'; near: smoke*"),
        (("--case", "ops/masking.py::masked_fil.Scalar[float32-expanded]#x"), "*near: masked_fill.Scalar*"),
        (("--expected", "nowhere.toml"), "*--expected: no file nowhere.toml*"),
    ],
)
def test_a_mistake_gets_one_line_that_lists_what_is_near(
    pytester: pytest.Pytester, args: tuple[str, ...], said: str
) -> None:
    result = run(pytester, *args)
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_an_unknown_backend_gets_one_line(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--pyargs", "conformance", "--backend", "nobody")
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines(["*unknown backend 'nobody'*"])


def test_a_selection_that_leaves_nothing_is_not_a_success(pytester: pytest.Pytester) -> None:
    assert run(pytester, "-k", "no_such_op").ret == Exit.NONE_SELECTED


def test_a_rule_that_expects_a_passing_cell_to_fail_breaks_the_run(pytester: pytest.Pytester) -> None:
    cells = 'op = "masked_fill.Scalar"\ndtype = "float32"\nlayout = "contiguous"'
    rule = f'[[rule]]\n{cells}\nstatus = "fail"\nreason = "once upon a time"\n'
    pytester.makefile(".toml", expected=rule)
    result = run(pytester, "-k", "masked_fill.Scalar and float32-contiguous", "--expected", "expected.toml")
    assert result.ret == Exit.EXPECTATIONS
    result.stdout.fnmatch_lines(["unexpected pass: ops/*.py::masked_fill.Scalar?float32-contiguous?"])


def test_the_plugin_loads_no_torch_for_other_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
