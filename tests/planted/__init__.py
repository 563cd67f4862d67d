"""The finders of the planted faults of the reference NPU, in a module for each class of ``faults.def``.

A module has two tables. ``FOUND_IN`` names the overload, dtype and layout of a cell of a plain lane, and the check that
finds the fault there, which is empty if the fault ends the process. ``FOUND_ELSEWHERE`` names the finder of a fault
that no cell of a plain lane is sure to find. The modules have the names of those in
``backend/tests/fault_demonstrations``. The faults that the tests of one room find are in the ``planted.py`` beside
these tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from tests.hazards import planted as by_hazards
from tests.planted import (
    arguments,
    errors,
    generator,
    late,
    layouts,
    memory,
    metadata,
    plain,
    processes,
    resizing,
    sequences,
    size,
    values,
)
from tests.planted.contexts import devices, modes, profiling, streams, threads, transforms
from tests.scenarios import planted as by_programs
from tools import faults

MODULES = (
    plain, size, values, arguments, layouts, metadata, errors, sequences, generator, resizing, memory,
    devices, streams, threads, modes, transforms, profiling, processes, late,
)  # fmt: skip

PLANTED = faults.planted(Path(__file__).parents[2] / "backend")
# Faults that make calls slow and change no result, so that no cell can find them.
SLOW = {name for name, fault in PLANTED.items() if fault.kind == faults.SPEED}
# Faults that only tensors show which are too large for cells.
HUGE = {name for name, fault in PLANTED.items() if fault.kind == faults.HUGE}
# Classes whose finders only the kill-rate knows: their faults measure the suite, and were not chosen by what it finds.
PLANTED_TO_MEASURE = {"size", "values", "arguments", "layouts", "sequences", "generator", "resizing"}

Finder = TypeVar("Finder")


def merged(tables: Iterable[dict[str, Finder]]) -> dict[str, Finder]:
    """Return the entries of all tables. Raises ValueError if a fault is in two of them."""
    found: dict[str, Finder] = {}
    for table in tables:
        if twice := found.keys() & table.keys():
            raise ValueError(f"more than one finder of {', '.join(sorted(twice))}")
        found |= table
    return found


# fault: (overload, dtype, layout, check that finds it)
FOUND_IN: dict[str, tuple[str, str, str, str]] = merged(module.FOUND_IN for module in MODULES)

BY_SCENARIOS = merged([
    by_programs.FOUND_BY, by_programs.FOUND_WHERE_REFUSED, by_programs.FOUND_WHEN_LATE, by_programs.FOUND_WHEN_RECORDED,
])  # fmt: skip

# fault: its finder, for faults that no cell of a plain lane is sure to find
FOUND_ELSEWHERE: dict[str, str] = {
    **{fault: f"the scenario {name}" for fault, name in BY_SCENARIOS.items() if fault not in FOUND_IN},
    **merged(module.FOUND_ELSEWHERE for module in MODULES),
    **dict.fromkeys(by_programs.FOUND_AFTER_MINUTES, "a scenario, in the kill-rate"),
    **dict.fromkeys(SLOW, "benchmarks/perf_faults.py"),
    **dict.fromkeys(HUGE, "benchmarks/huge_faults.py"),
    **dict.fromkeys(by_hazards.FOUND_BY, "tests/hazards/test_hazards.py"),
    **dict.fromkeys(by_hazards.FOUND_WHEN_RECORDED, "tests/hazards/test_hazards.py"),
    **dict.fromkeys(by_hazards.FOUND_BY_THE_DRIVER_S_TESTS, "backend/tests/test_late.py"),
}
