"""Which kernels may be why a cell fails. Pure.

A kernel is a suspect if the cell's first failing case calls it, unless its own cells were tried and all agree with CPU.
The cell's own operator always is one. Torch composes some operators of others. Such an operator has no kernel, so the
kernels that it calls are suspects in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from conformance.vocabulary import CellId, Route

# Stands for the backend's boxed fallback among the kernels of a cell that it serves.
FALLBACK = "the fallback"


@dataclass(frozen=True, slots=True)
class FailingCell:
    """A failing cell, as far as its cause is concerned."""

    cell: CellId
    case: str  # the first that fails
    kernels: tuple[str, ...]  # what that case called on the device, in order; without the cell's own operator
    elements: int = 0  # of the case's largest argument
    route: str = Route.NATIVE
    on_cpu: bool = False  # CPU ran these kernels: the case died on the device


class Evidence:
    """What the failing cells of a run, and the operators of its passing ones, say about kernels."""

    def __init__(self, failing: Sequence[FailingCell], passed: Collection[str]) -> None:
        self._passed = passed
        self._failing = {f.cell.operator for f in failing}
        # Operators with a kernel that fails: torch composes the others.
        self._kernels = {f.cell.operator for f in failing if f.route != Route.COMPOSITE}
        self._fall_back = {f.cell.operator for f in failing if f.route == Route.FALLBACK}
        self._untried = _untried(failing, self._failing, passed)
        self._below = self._below_composites(failing)
        self._only: set[str] = set()  # kernels that are the only suspect of a cell besides its own operator
        self.suspects = {f.cell: self._suspects(f) for f in failing}

    def may_stand(self, kernel: str, cells: Iterable[CellId]) -> bool:
        """Whether a kernel may be named for these cells.

        An operator that falls back has no kernel of its own: what the fallback runs is CPU's, which is right.
        Any other that has none of the cells has to explain several operators: a single one is the better name for its
        failures, unless torch composes it and nothing else that it calls can be broken.
        """
        if kernel in self._failing or kernel == FALLBACK or kernel in self._only:
            return True
        return len({cell.operator for cell in cells}) > 1

    def _below_composites(self, failing: Iterable[FailingCell]) -> dict[str, set[str]]:
        """For each failing operator that torch composes, the suspects with a kernel that its failing cells call."""
        found: dict[str, set[str]] = defaultdict(set)
        for f in failing:
            if f.cell.operator not in self._kernels:
                found[f.cell.operator].update(set(f.kernels) & (self._kernels | self._untried))
        return found

    def _suspects(self, f: FailingCell) -> frozenset[str]:
        own = f.cell.operator
        called = self._called(f)
        if {own, *called} & self._fall_back:
            called.add(FALLBACK)
        if f.route == Route.COMPOSITE and own not in self._kernels and not called:
            # One that it calls is wrong in a way that the kernel's own cells do not show.
            called = {k for k in f.kernels if k not in self._passed} or set(f.kernels)
            if len(called) == 1:
                self._only |= called
        return frozenset({own, *called})

    def _called(self, f: FailingCell) -> set[str]:
        """The suspects that a cell calls. Those below an operator that torch composes replace it."""
        called = set(f.kernels) & (self._failing | self._untried)
        for composite in called - self._kernels - self._untried:
            below = self._below[composite]
            if f.on_cpu:  # CPU may run another kernel below the operator than the device
                called |= below
            if below & called:
                called.discard(composite)
        return called


def _untried(cells: Iterable[FailingCell], failing: Collection[str], passed: Collection[str]) -> set[str]:
    """The kernels without cells of their own that may be broken.

    The operator that began before such a kernel is its caller most often. Where all cells of the caller agree with CPU,
    the kernel does what it should. It may be broken if its caller fails in at least half of the calls.
    """
    votes: dict[str, list[bool]] = defaultdict(list)
    for f in cells:
        caller_fails = True  # the cell's own operator
        for kernel in f.kernels:
            if kernel in failing or kernel in passed:
                caller_fails = kernel in failing
            else:
                votes[kernel].append(caller_fails)
    return {kernel for kernel, fails in votes.items() if 2 * sum(fails) >= len(fails)}
