"""The cells of the smoke tier that the measurement tries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from conformance.plan.plan import Plan
from conformance.vocabulary import CellId, Route
from tools.causes.clean import Clean
from tools.kill_rate import order

MOST_OTHER = 4000  # cells of overloads without a native kernel that are tried with one fault awake


def of_plan(plan: Plan) -> list[CellId]:
    """Return cells of each overload, in the order of the plan's overloads.

    A native overload has all its cells. Any other overload has a cell of each dtype and of each layout.
    """
    return [cell for o in plan.overloads() for cell in _of_overload(plan.cells(o), str(plan.inventory[o].route))]


def _of_overload(cells: Iterable[CellId], route: str) -> list[CellId]:
    return order.varied(cells) if route == Route.NATIVE else order.one_at_a_time(cells)


def of_fault(asking: Iterable[Clean]) -> list[CellId]:
    """Return cells that ask for a fault: all cells of native overloads, then at most ``MOST_OTHER`` of others.

    Each part has first a cell of each overload, then a second cell of each, and so on.
    """
    native: dict[str, list[CellId]] = defaultdict(list)
    other: dict[str, list[CellId]] = defaultdict(list)
    for one in asking:
        (native if one.route == Route.NATIVE else other)[one.cell.overload].append(one.cell)
    return [*order.turns(native.values()), *order.turns(other.values())[:MOST_OTHER]]
