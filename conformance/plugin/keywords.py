"""Selection of cells by ``-k`` before they become items. Overloads that ``-k`` cannot select are skipped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from conformance.layouts import LAYOUTS
from conformance.support import options
from conformance.vocabulary import DTYPES, CellId

if TYPE_CHECKING:
    from conformance.plan.plan import Plan

_INSIDE = frozenset("[]-")


def cells_of(node: pytest.File, plan: Plan) -> Iterable[CellId]:
    """Return the cells of an op family's file that -k selects; without -k, all of them."""
    family = node.path.stem
    keywords = options.keyword(node.config.option.keyword)
    if keywords is None:
        return plan.family(family)
    above = _names_above(node)
    cells = plan.family(family, lambda overload: keywords.may_select([*above, f"{overload}["], _may_be_inside))
    return (cell for cell in cells if keywords.selects([*above, cell.name]))


def _may_be_inside(word: str) -> bool:
    """Return whether the part of a cell's name after the overload may contain ``word``."""
    return bool(_INSIDE & set(word)) or any(word in name for name in (*DTYPES, *LAYOUTS))


def _names_above(node: pytest.Collector) -> list[str]:
    """Return the names of a file and of its parent nodes that pytest matches ``-k`` against."""
    chain = [n for n in node.listchain() if not isinstance(n, pytest.Session)]
    tops = [n for n in chain if isinstance(n, pytest.Directory) and isinstance(n.parent, pytest.Session)]
    return [*(n.name for n in chain if n not in tops), *node.listextrakeywords()]
