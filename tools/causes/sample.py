"""The cells that the measurement tries: some of each overload of the smoke tier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from conformance.plan.plan import Plan
from conformance.vocabulary import CellId
from tools.kill_rate import order

CELLS_OF_OVERLOAD = 4
MOST = 800  # cells tried with one fault awake


def of_plan(plan: Plan) -> list[CellId]:
    """Return some cells of each overload, of different dtypes and layouts, the overloads in the plan's order."""
    return [cell for o in plan.overloads() for cell in order.varied(plan.cells(o))[:CELLS_OF_OVERLOAD]]


def of_fault(asking: Iterable[CellId]) -> list[CellId]:
    """Return at most :data:`MOST` of the cells that ask for a fault: one of each overload, then a second of each."""
    by_overload: dict[str, list[CellId]] = defaultdict(list)
    for cell in asking:
        by_overload[cell.overload].append(cell)
    return order.turns(by_overload.values())[:MOST]
