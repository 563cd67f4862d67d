"""The markers of cells for ``-m``: route, dtype, layout and family.

The suite applies ``-m`` to cells before they become items. So 250,000 items carry no markers, and ``-k all`` does not
match the marker ``fallback``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import pytest

from conformance.layouts import LAYOUTS
from conformance.ops import FAMILIES
from conformance.support import options
from conformance.vocabulary import DTYPES, SCENARIOS, CellId, Route

if TYPE_CHECKING:
    import ast

    from conformance.plan.plan import Plan

MARKERS = {
    **{str(route): f"cells of overloads with this route: {route.meaning}" for route in Route},
    **dict.fromkeys(DTYPES, "cells of this dtype"),
    **{layout: f"cells of this layout: {meaning}" for layout, meaning in LAYOUTS.items()},
    **{family: f"cells of the family ops/{family}.py" for family in FAMILIES},
    SCENARIOS: "cells of programs of several calls, in scenarios/",
}


def register(config: pytest.Config) -> None:
    """Add the markers to those that ``pytest --markers`` lists."""
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def expression_of(config: pytest.Config) -> ast.expr | None:
    """Return the expression given by -m, None if there is none. Raises OptionError."""
    if not config.option.markexpr:
        return None
    registered = (line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers"))
    return options.markers(config.option.markexpr, {*MARKERS, *registered})


def selected(config: pytest.Config, plan: Plan, cells: Iterable[CellId]) -> Iterable[CellId]:
    """Return the cells that -m selects."""
    expression = expression_of(config)
    if expression is None:
        return cells
    selects = cache(lambda *names: options.selects(expression, names))
    return (cell for cell in cells if selects(plan.route(cell), cell.dtype, cell.layout, cell.family))


@contextmanager
def decided_here(config: pytest.Config, items: list[pytest.Item], decided: type[pytest.Item]) -> Iterator[None]:
    """Apply -m to all items except those of the type ``decided``. In the ``with`` block, pytest does not."""
    expression = expression_of(config)
    if expression is None:
        yield
        return
    out = [item for item in items if not isinstance(item, decided) and not _is_selected(expression, item)]
    if out:
        config.hook.pytest_deselected(items=out)
        left_out = set(out)  # a full run has 250,000 items
        items[:] = [item for item in items if item not in left_out]
    given, config.option.markexpr = config.option.markexpr, ""
    try:
        yield
    finally:
        config.option.markexpr = given


def _is_selected(expression: ast.expr, item: pytest.Item) -> bool:
    return options.selects(expression, {mark.name for mark in item.iter_markers()})
