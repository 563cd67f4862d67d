"""The fewest kernels that explain the failing cells of a run. Pure.

A kernel is an operator, because torch's profiler names no overloads. :mod:`conformance.results.suspicion` says which
kernels may be why a cell fails. The kernel that explains most overloads comes first, then the one that explains most of
the rest, and so on. Of two that explain as much, the one that is called later comes first. A cell that no other kernel
explains stands for itself.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.records import Observation
from conformance.results.suspicion import FALLBACK, Evidence, FailingCell
from conformance.vocabulary import CellId, Status

__all__ = ["FALLBACK", "Cause", "Contrast", "FailingCell", "causes", "failing_cell", "of_failures", "of_run"]

AXES = ("dtype", "layout")


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
    evidence = Evidence(failing, passed)
    left = {f.cell: f for f in failing}
    found: list[Cause] = []
    while left:
        kernel = _best(left.values(), evidence)
        explained = [f for f in left.values() if kernel in evidence.suspects[f.cell]]
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


def _best(left: Iterable[FailingCell], evidence: Evidence) -> str:
    """The kernel that explains most of what is left."""
    cells: dict[str, list[CellId]] = defaultdict(list)
    depth: dict[str, int] = defaultdict(int)  # at how late a place the kernel is called
    for f in left:
        for kernel in evidence.suspects[f.cell]:
            cells[kernel].append(f.cell)
            depth[kernel] = max(depth[kernel], f.kernels.index(kernel) + 1 if kernel in f.kernels else 0)

    def rank(kernel: str) -> tuple[int, int, bool, int, str]:
        overloads = {cell.overload for cell in cells[kernel]}
        return -len(overloads), -len(cells[kernel]), kernel != FALLBACK, -depth[kernel], kernel

    return min((k for k in cells if evidence.may_stand(k, cells[k])), key=rank)


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
