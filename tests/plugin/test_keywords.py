"""``-k``, which selects cells before they become items, as pytest selects items."""

from __future__ import annotations

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from conformance.vocabulary import CellId

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

FAMILY = ("--pyargs", "conformance.ops.masking", "--backend", "torch:cpu", "--tier", "smoke")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    result = pytester.runpytest_subprocess(*FAMILY, "--collect-only", "-q", *args)
    return [line for line in result.outlines if CellId.parse(line)]


def test_keywords_select_the_cells_that_pytest_would_select(pytester: pytest.Pytester) -> None:
    names = [cell.partition("::") for cell in collected(pytester)]
    for keyword in ("masked_fill and not (SCALAR or int)", "tril.out[ or float32-cont", "masking.py and step2"):
        expression = Expression.compile(keyword)
        wanted = [
            f"{file}::{name}"
            for file, _, name in names
            if expression.evaluate(KeywordMatcher({file.removeprefix("ops/"), name}))
        ]
        assert wanted
        assert collected(pytester, "-k", keyword) == wanted
