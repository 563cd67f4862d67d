"""The suite as a hunter: the bring-up gate, and cells in a fixed order."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

from conformance import ops
from conformance.backends import Capabilities
from conformance.explain import describe
from conformance.layouts import CONTEXTS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import Observation
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.scenarios import catalogue
from conformance.vocabulary import DEFAULT_SEED, CellId, Status
from tools.kill_rate import order
from tools.kill_rate.trial import Finding

GATE = "bring-up gate"
CELLS_OF_NATIVE = 4
ROUTES = ("native", "fallback", "composite")
_SCENARIOS = "conformance.scenarios."
_STARTERS = frozenset({f"{_SCENARIOS}new_processes", f"{_SCENARIOS}patience"})  # the modules that start processes


def quick(backend: Capabilities) -> tuple[Plan, list[CellId]]:
    """Return the quick scenarios, then a few cells of the smoke tier.

    These are a few cells of each native overload, and one cell of each fallback overload, since fallbacks share code.
    """
    plan = _plan(backend, "smoke")
    kept = [order.varied(plan.cells(o))[:CELLS_OF_NATIVE] for o in _served_by(plan, "native")]
    kept += [order.varied(plan.cells(o))[:1] for o in _served_by(plan, "fallback")]
    return plan, [*plan.scenarios(), *order.turns(kept)]


def smoke(backend: Capabilities) -> tuple[Plan, list[CellId]]:
    """Return the cells of the smoke tier, and its scenarios."""
    plan = _plan(backend, "smoke")
    return plan, [*order.turns([plan.cells(o) for route in ROUTES for o in _served_by(plan, route)]), *plan.scenarios()]


def full(backend: Capabilities) -> tuple[Plan, list[CellId]]:
    """Return the cells of the full tier.

    First come each dtype and each layout of native overloads, then of fallback overloads, then all scenarios, then each
    dtype and each layout of composite overloads, and then every other pair of a dtype and a layout.
    """
    plan = _plan(backend, "full")
    early = [*_one_at_a_time(plan, "native"), *_one_at_a_time(plan, "fallback")]
    early += [*plan.scenarios(), *_one_at_a_time(plan, "composite")]
    every = [plan.cells(o) for route in ROUTES for o in _served_by(plan, route)]
    return plan, list(dict.fromkeys([*early, *order.turns(every)]))


def contexts(backend: Capabilities) -> tuple[Plan, list[CellId]]:
    """Return all cells of contexts, those of native overloads first."""
    plan = _plan(backend, "wide")
    of = [plan.cells(o) for route in ROUTES for o in _served_by(plan, route)]
    return plan, order.turns([[cell for cell in cells if cell.layout in CONTEXTS] for cells in of])


def scenarios(backend: Capabilities) -> tuple[Plan, list[CellId]]:
    """Return all scenarios."""
    plan = _plan(backend, "full")
    return plan, [*plan.scenarios()]


def _one_at_a_time(plan: Plan, route: str) -> list[CellId]:
    return order.turns([order.one_at_a_time(plan.cells(o)) for o in _served_by(plan, route)])


def _plan(backend: Capabilities, tier: str) -> Plan:
    return Plan(backend, Selection(tier=TIERS[tier]), DEFAULT_SEED)


STAGES = {"quick": quick, "smoke": smoke, "full": full, "contexts": contexts, "scenarios": scenarios}


def _served_by(plan: Plan, route: str) -> list[str]:
    """Return the overloads of one route: the first of each family, then the second of each, and so on."""
    families: dict[str, list[str]] = {}
    for overload in plan.overloads():
        if str(plan.inventory[overload].route) == route:
            families.setdefault(ops.facts(overload).family, []).append(overload)
    return order.turns(families.values())


class SuiteHunter:
    """The gate and the cells of one stage. ``timeout``: seconds for each cell."""

    def __init__(self, backend: Capabilities, stage: str, timeout: float) -> None:
        plan, cells = STAGES[stage](backend)
        self._cells = {str(cell): cell for cell in cells}
        self._work, self._timeout = CellRunner(plan), timeout
        self._runner: Runner | None = None
        self.plan = [GATE, *self._cells]
        self.untraced = {item for item, cell in self._cells.items() if cell.is_scenario and _starts_processes(cell)}

    def attempt(self, item: str) -> Finding | None:
        """Run the gate or a cell in a forked child."""
        if self._runner is None:
            self._runner = Runner(self._work, self._timeout, inquiry_s=0)  # a death is a kill, even a flaky one
        if item == GATE:
            broken = self._runner.gate()
            return Finding("gate", item, str(broken)) if broken else None
        return found_in(self._runner.observe(self._cells[item]))

    def rest(self) -> None:
        """End the child. The next attempt starts a new child."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _starts_processes(cell: CellId) -> bool:
    """Return whether a scenario can start processes: its module uses, perhaps through others, those that start them."""
    return not _STARTERS.isdisjoint(_used_by(catalogue.find(cell.overload).run.__module__))


@cache
def _used_by(module: str) -> frozenset[str]:
    """Return the modules of scenarios that a module imports or imports from, also indirectly, and the module itself."""
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            named = (v.__name__ if isinstance(v, ModuleType) else _home(v) for v in vars(sys.modules[name]).values())
            left += [other for other in named if other.startswith(_SCENARIOS) and other in sys.modules]
    return frozenset(found)


def _home(value: object) -> str:
    """Return the name of the module that defines a function or a class; "" for other values."""
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) else ""


def found_in(observation: Observation) -> Finding | None:
    """Return the first finding of a cell. A crash and a timeout count as checks."""
    if not observation.status.is_failure:
        return None
    first = observation.failures[0]
    check = first.check or str(observation.status)
    if observation.status is Status.ERROR:
        check = str(Status.ERROR)
    return Finding(check, str(observation.cell), describe.first_line(first))
