"""The fewest kernels that explain the failing cells of a run. Pure.

A failing cell is explained by a suspect kernel that its first failing case calls. A kernel is an operator, because
torch's profiler names no overloads. It is a suspect unless its own cells were tried and all agree with CPU. The kernel
that explains most overloads comes first, then the one that explains most of the rest, and so on. Of two that explain
as much, the one that is called later comes first. A cell that no other's kernel explains stands for itself.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.vocabulary import CellId, Observation, Route, Status

# Stands for the backend's boxed fallback among the kernels of a cell that it serves.
FALLBACK = "the fallback"

AXES = ("dtype", "layout")


@dataclass(frozen=True, slots=True)
class FailingCell:
    """A failing cell, as far as its cause is concerned."""

    cell: CellId
    case: str  # the first that fails
    kernels: tuple[str, ...]  # what that case called on the device, in order; without the cell's own operator
    elements: int = 0  # of the case's largest argument
    route: str = Route.NATIVE


@dataclass(frozen=True, slots=True)
class Contrast:
    """What tells the failing cells of a kernel from its passing ones along an axis: values that fail, and that pass."""

    axis: str
    failing: tuple[str, ...]
    passing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """A kernel, and the failing cells that it explains."""

    kernel: str  # an operator, or FALLBACK
    cells: tuple[CellId, ...]
    example: str  # the case with the most direct call and the smallest arguments; of a cell without cases, its id
    example_cell: CellId
    contrasts: tuple[Contrast, ...] = ()

    @property
    def overloads(self) -> tuple[str, ...]:
        """The overloads of its cells: the kernel's own first, then those with most cells."""
        counts: dict[str, int] = defaultdict(int)
        for cell in self.cells:
            counts[cell.overload] += 1
        return tuple(sorted(counts, key=lambda name: (not self._is_own(name), -counts[name], name)))

    @property
    def callers(self) -> tuple[str, ...]:
        """The overloads among them that are not the kernel's own: they call it."""
        return tuple(name for name in self.overloads if not self._is_own(name))

    def _is_own(self, overload: str) -> bool:
        return overload.partition(".")[0] == self.kernel


def of_run(observations: Iterable[Observation]) -> list[Cause]:
    """Return the causes of a run's failing cells, those that explain most first."""
    ran = list(observations)
    return of_failures((o for o in ran if o.status.is_failure), (o.cell for o in ran if o.status is Status.PASS))


def of_failures(failing: Iterable[Observation], passing: Iterable[CellId]) -> list[Cause]:
    """Return the causes of failing cells, those that explain most first. ``passing``: the cells that agree with CPU."""
    return causes([failing_cell(o) for o in failing], passing)


def causes(failing: Sequence[FailingCell], passing: Iterable[CellId]) -> list[Cause]:
    """Return the causes of ``failing`` cells, those that explain most first."""
    passed: dict[str, list[CellId]] = defaultdict(list)
    for cell in passing:
        passed[cell.operator].append(cell)
    own = {f.cell.operator for f in failing}
    left = {f.cell: f for f in failing}
    broken = own | _untried(failing, own, passed)
    suspects = {f.cell: _suspects(f, broken) for f in failing}
    found: list[Cause] = []
    while left:
        kernel = _best(left.values(), suspects, own)
        explained = [f for f in left.values() if kernel in suspects[f.cell]]
        found.append(_cause(kernel, explained, passed))
        for f in explained:
            del left[f.cell]
    return found


def failing_cell(observation: Observation) -> FailingCell:
    """Return what :func:`causes` needs of a failing cell's observation."""
    o = observation
    first = next((f for f in o.failures if f.calls), o.failures[0] if o.failures else None)
    calls = tuple(k for k in first.calls if k != o.cell.operator) if first else ()
    sizes = [math.prod(a.size) for a in first.arguments if a.is_tensor] if first else []
    return FailingCell(o.cell, first.case if first else "", calls, max(sizes, default=0), o.route)


def _suspects(f: FailingCell, broken: set[str]) -> frozenset[str]:
    """The kernels that may be why a cell fails, its own operator among them. ``broken``: those that may be broken.

    A composite overload has no kernel that could be broken. Where it calls none that may be, one of those that it calls
    is wrong in a way that the kernel's own cells do not show.
    """
    if f.route == Route.FALLBACK:
        return frozenset({f.cell.operator, FALLBACK, *(broken & set(f.kernels))})
    called = broken & set(f.kernels)
    if f.route == Route.COMPOSITE:
        called = called or set(f.kernels)
    return frozenset({f.cell.operator, *called})


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


def _best(left: Iterable[FailingCell], suspects: Mapping[CellId, frozenset[str]], failing: Collection[str]) -> str:
    """The kernel that explains most of what is left. ``failing``: the operators that have failing cells.

    One that has none of them has to explain several operators: a single one is the better name for its failures.
    """
    cells: dict[str, list[CellId]] = defaultdict(list)
    depth: dict[str, int] = defaultdict(int)  # at how late a place the kernel is called
    for f in left:
        for kernel in suspects[f.cell]:
            cells[kernel].append(f.cell)
            depth[kernel] = max(depth[kernel], f.kernels.index(kernel) + 1 if kernel in f.kernels else 0)

    def rank(kernel: str) -> tuple[int, int, bool, int, str]:
        overloads = {cell.overload for cell in cells[kernel]}
        return -len(overloads), -len(cells[kernel]), kernel == FALLBACK, -depth[kernel], kernel

    return min((k for k in cells if k in failing or len({cell.operator for cell in cells[k]}) > 1), key=rank)


def _cause(kernel: str, explained: Sequence[FailingCell], passed: Mapping[str, Sequence[CellId]]) -> Cause:
    example = min(explained, key=lambda f: (f.cell.operator != kernel, len(f.kernels), f.elements, str(f.cell)))
    own = [f.cell for f in explained if f.cell.operator == kernel] or [f.cell for f in explained]
    others = [cell for operator in {cell.operator for cell in own} for cell in passed.get(operator, ())]
    cells = tuple(sorted((f.cell for f in explained), key=str))
    return Cause(kernel, cells, example.case or str(example.cell), example.cell, _contrasts(own, others))


def _contrasts(failing: Sequence[CellId], passing: Sequence[CellId]) -> tuple[Contrast, ...]:
    """The axes along which no value both fails and passes, and that tell the two apart."""
    found = []
    for axis in AXES:
        bad = sorted({str(getattr(cell, axis)) for cell in failing})
        good = sorted({str(getattr(cell, axis)) for cell in passing} - set(bad))
        if good:
            found.append(Contrast(axis, tuple(bad), tuple(good)))
    return tuple(found)
