"""Faults, capacity, schedule and memory contents, set from Python for tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from refnpu import _C

#: The variable that wakes a fault in every process that loads the driver.
VARIABLE = "REFNPU_FAULT"


def faults() -> dict[str, str]:
    """Return the description of every fault that can be woken, by name."""
    return _C.faults()


def active_fault() -> str | None:
    """Return the fault that is awake, from ``REFNPU_FAULT`` or :func:`set_fault`, or None."""
    return _C.active_fault() or None


def set_fault(name: str | None) -> None:
    """Wake one fault, or none, in this process and in those that it starts from now on.

    Raises ValueError for an unknown name. The message lists similar names.
    """
    _C.set_fault(name or "")
    if name:
        os.environ[VARIABLE] = name
    else:
        os.environ.pop(VARIABLE, None)


@contextmanager
def fault(name: str) -> Iterator[None]:
    """Keep one fault awake in a ``with`` block."""
    before = active_fault()
    set_fault(name)
    try:
        yield
    finally:
        set_fault(before)


@contextmanager
def questions() -> Iterator[set[tuple[str, str]]]:
    """Collect the faults that code asks for in a ``with`` block, while all faults are asleep.

    Yields an empty set. After the block it has the pairs (fault, operator), where the operator is the innermost ATen
    operator that ran, or "" outside of all operators.
    """
    found: set[tuple[str, str]] = set()
    _C.start_fault_trace()
    try:
        yield found
    finally:
        found |= {(fault, operator.removeprefix("aten::")) for fault, operator in _C.stop_fault_trace()}


def trace_faults() -> Callable[[], set[str]]:
    """Put all faults to sleep, and collect the faults that code asks for until :func:`set_fault` is called.

    Code in this process and in those that it forks afterwards counts. Returns a function that returns the faults that
    were asked for since its last call.
    """
    _C.share_fault_trace()
    return lambda: set(_C.take_fault_trace())


@contextmanager
def capacity(size: int, device: int = 0) -> Iterator[None]:
    """Let a device have ``size`` bytes in a ``with`` block."""
    before = _C.memory_stats(device)["capacity"]
    _C.set_capacity(device, size)
    try:
        yield
    finally:
        _C.set_capacity(device, before)


@contextmanager
def late(delay: str = "0") -> Iterator[None]:
    """Run work late in a ``with`` block, each piece after a delay: microseconds, or ``random:SEED``.

    Work that is still queued at the end of the block ends before any that is submitted afterwards.
    """
    before = _C.is_late()
    _C.set_delay(delay)
    _C.set_late(True)
    try:
        yield
    finally:
        _C.set_late(before)
        _C.set_delay(os.environ.get("REFNPU_DELAY_US") or "0")


@contextmanager
def lazy() -> Iterator[None]:
    """Record work in a ``with`` block, until a step is marked or something needs it."""
    before = _C.is_lazy()
    _C.set_lazy(True)
    try:
        yield
    finally:
        _C.set_lazy(before)


@contextmanager
def fill(fresh: str = "none", freed: str = "none") -> Iterator[None]:
    """Fill fresh and freed blocks in a ``with`` block: ``zero``, ``nan``, a byte like ``0xAB``, ``random:SEED``.

    An empty name leaves a fill as it is. After the block the fills are those that the process was started with.
    """
    _C.set_fill(fresh, freed)
    try:
        yield
    finally:
        _C.set_fill(os.environ.get("REFNPU_FILL_FRESH") or "none", os.environ.get("REFNPU_FILL_FREED") or "none")
