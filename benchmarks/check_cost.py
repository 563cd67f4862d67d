"""The cost of each check: ``check_cost.py [CELLS]``, the time spent in each check in a run of the smoke tier.

3,000 cells of the reference NPU (or CELLS) run in this process, with a timer around each check. The result is
microseconds for each case, and the share of the case's time. The calls of the op itself are listed for comparison.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

from conformance import backends
from conformance.judging import device_memory, oracle, outcomes, repetition, storages, twins
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.running.cell_runner import CellRunner
from conformance.running.progress import Progress
from conformance.vocabulary import DEFAULT_SEED

# Check -> the module that calls it, and its name there.
CHECKS: dict[str, tuple[ModuleType | type, str]] = {
    "arguments made": (twins.Twins, "side"),
    "the op, on both sides": (oracle, "call"),
    "live blocks and bytes": (backends.Capabilities, "live_memory"),
    "memory verified": (device_memory, "damage"),
    "bytes of arguments": (storages.Fetched, "__init__"),
    "bytes not to be touched": (storages.Fetched, "differences"),
    "versions": (storages, "versions"),
    "aliasing": (storages.Sharing, "__init__"),
    "results": (outcomes.Comparison, "results"),
    "written arguments": (outcomes.Comparison, "written"),
    "the same again": (repetition, "differences"),
}


def clocked(spent: Counter[str], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``call`` with a timer that adds up nanoseconds, including those of nested calls."""

    def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter_ns()
        try:
            return call(*args, **kwargs)
        finally:
            spent[name] += time.perf_counter_ns() - started

    return timed


def main(count: int) -> None:
    """Print a line for each check."""
    warnings.simplefilter("ignore")
    plan = Plan(backends.find("refnpu"), Selection(tier=TIERS["smoke"]), DEFAULT_SEED)
    work = CellRunner(plan)
    work.prepare()
    cells = [cell for name in plan.overloads() for cell in plan.cells(name)]
    spent: Counter[str] = Counter()
    for name, (place, attribute) in CHECKS.items():
        setattr(place, attribute, clocked(spent, name, getattr(place, attribute)))
    started, cases = time.perf_counter_ns(), 0
    for cell in cells[:: max(1, len(cells) // count)]:
        cases += work.run(cell, 0, Progress())[0].cases
    whole = time.perf_counter_ns() - started
    print(f"{cases} cases, {whole / cases / 1000:.0f} us each, of which")
    for name in CHECKS:
        print(f"{name:<26} {spent[name] / cases / 1000:>6.1f} us  {spent[name] / whole:>6.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
