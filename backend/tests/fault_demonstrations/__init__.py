"""The shortest programs that show planted faults: a module for each class of ``faults.def``.

A demonstration is Python source that sets ``result`` on the device ``d``. While the fault is asleep, ``result`` equals
CPU's; while it is awake, it does not. It can use ``torch``, ``F`` (``torch.nn.functional``), ``nan``, ``inf`` and
``raised``. The class ``contexts`` has a module for each kind of context.
"""

from __future__ import annotations

from collections.abc import Iterable

from fault_demonstrations import (
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
from fault_demonstrations.contexts import devices, modes, profiling, streams, threads, transforms

MODULES = (
    plain, size, values, arguments, layouts, metadata, errors, sequences, generator, resizing, memory,
    devices, streams, threads, modes, transforms, profiling, processes, late,
)  # fmt: skip


def merged(tables: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return the entries of all tables. Raises ValueError if a fault is in two tables."""
    found: dict[str, str] = {}
    for table in tables:
        if twice := found.keys() & table.keys():
            raise ValueError(f"more than one demonstration of {', '.join(sorted(twice))}")
        found |= table
    return found


# fault: its demonstration
DEMONSTRATIONS = merged(module.DEMONSTRATIONS for module in MODULES)
