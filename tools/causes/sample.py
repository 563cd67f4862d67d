"""The cells of the smoke tier that the measurement tries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from conformance.plan.plan import Plan
from conformance.vocabulary import CellId, Route
from tools.causes.clean import Clean
from tools.kill_rate import order

CELLS_OF_OVERLOAD = 4  # of one without a native kernel
MOST_NATIVE, MOST_OTHER = 1000, 1500  # cells tried with one fault awake


def of_plan(plan: Plan) -> list[CellId]:
    """Return all cells of each native overload, and some of each other, in the order of the plan's overloads."""
    return [
        cell for o in plan.overloads() for cell in order.varied(plan.cells(o))[: _most(str(plan.inventory[o].route))]
    ]


def _most(route: str) -> int | None:
    return None if route == Route.NATIVE else CELLS_OF_OVERLOAD


def of_fault(asking: Iterable[Clean]) -> list[CellId]:
    """Return some of the cells that ask for a fault: of native overloads, then of others.

    Of both, first a cell of each overload, then a second of each, and so on.
    """
    native: dict[str, list[CellId]] = defaultdict(list)
    other: dict[str, list[CellId]] = defaultdict(list)
    for one in asking:
        (native if one.route == Route.NATIVE else other)[one.cell.overload].append(one.cell)
    return [*order.turns(native.values())[:MOST_NATIVE], *order.turns(other.values())[:MOST_OTHER]]
