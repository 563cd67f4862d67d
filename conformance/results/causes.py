"""A few kernels that explain the failing cells of a run. Pure.

A kernel is an operator, because torch's profiler names no overloads. :mod:`conformance.results.suspicion` finds the
kernels that may be why a cell fails. The kernel that explains the most overloads is chosen first, then the kernel that
explains the most of the rest, and so on. Among kernels that explain equally many overloads and cells, the fallback
comes first, kernels whose own cells all agree with CPU come last, and otherwise the kernel that is called later comes
first. A cell that no other kernel explains is explained by its own operator.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.records import ALONE, CaseFailure, Observation, Setting
from conformance.results.suspicion import FALLBACK, SEVERAL, Evidence, FailingCell, Manner, PassingCell, Suspect
from conformance.vocabulary import CellId, Fact, Status

__all__ = [
    "FALLBACK", "Cause", "Contrast", "FailingCell", "Manner", "PassingCell", "causes", "failing_cell", "of_failures",
    "of_run",
]  # fmt: skip

AXES = ("dtype", "layout")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A difference between a kernel's failing and passing cells along an axis: values that fail, and that only pass."""

    axis: str
    failing: tuple[str, ...]
    passing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """A kernel, and the failing cells that it explains."""

    kernel: str  # an operator, or FALLBACK
    cells: tuple[CellId, ...]
    example: str  # the case with the most direct call and the smallest arguments; the cell's id if it has no case
    example_cell: CellId
    contrasts: tuple[Contrast, ...] = ()
    setting: Setting = ALONE  # what the example needs to fail again
    manner: Manner = SEVERAL  # how all cells fail

    @property
    def is_program(self) -> bool:
        """Whether the cause is a program itself, because no kernel explains why the program fails."""
        return self.example_cell.is_scenario and self.kernel == self.example_cell.operator

    @property
    def overloads(self) -> tuple[str, ...]:
        """The overloads of the cells: the kernel's own first, then the others. Overloads with most cells come first."""
        counts: dict[str, int] = defaultdict(int)
        for cell in self.cells:
            counts[cell.overload] += 1
        return tuple(sorted(counts, key=lambda name: (not self._is_own(name), -counts[name], name)))

    @property
    def callers(self) -> tuple[str, ...]:
        """The overloads of the cells that are not the kernel's own, but call the kernel."""
        return tuple(name for name in self.overloads if not self._is_own(name))

    def _is_own(self, overload: str) -> bool:
        return overload.partition(".")[0] == self.kernel


def of_run(observations: Iterable[Observation]) -> list[Cause]:
    """Return the causes of a run's failing cells, beginning with the cause that explains most."""
    ran = list(observations)
    passing = (PassingCell(o.cell, o.route) for o in ran if o.status is Status.PASS)
    return of_failures((o for o in ran if o.status.is_failure), passing)


def of_failures(failing: Iterable[Observation], passing: Iterable[PassingCell]) -> list[Cause]:
    """Return the causes as :func:`of_run` does. ``passing``: the cells that agree with CPU."""
    return causes([failing_cell(o) for o in failing], passing)


def causes(failing: Sequence[FailingCell], passing: Iterable[PassingCell]) -> list[Cause]:
    """Return the causes of ``failing`` cells, beginning with the cause that explains most."""
    agree = list(passing)
    passed: dict[str, list[CellId]] = defaultdict(list)
    for cell, _ in agree:
        passed[cell.operator].append(cell)
    left = _Left(failing, Evidence(failing, agree))
    found: list[Cause] = []
    while suspect := left.best():
        found.append(_cause(suspect.kernel, left.take(suspect), passed))
    return found


def failing_cell(observation: Observation) -> FailingCell:
    """Return the facts that :func:`causes` needs from a failing cell's observation."""
    o = observation
    first = next((f for f in o.failures if f.calls), o.failures[0] if o.failures else None)
    calls = tuple(k for k in first.calls if k != o.cell.operator) if first else ()
    sizes = [math.prod(a.size) for a in first.arguments if a.is_tensor] if first else []
    died = first is not None and first.death is not None
    stack = tuple(k for k in reversed(first.death.operators) if k != o.cell.operator) if first and first.death else ()
    setting = first.setting if first else ALONE
    elements, manner = max(sizes, default=0), _manner(first) if first else SEVERAL
    return FailingCell(o.cell, first.case if first else "", calls, elements, o.route, died, setting, manner, stack)


def _manner(failure: CaseFailure) -> Manner:
    """Return the signal by which a case died, the error that the device alone raised, or the first check that fails."""
    if failure.death is not None:
        return Manner(signal=failure.death.signal or "timeout")
    first = failure.mismatches[0] if failure.mismatches else None
    facts = first.facts if first else {}
    error = facts.get("device") if facts.get("kind") == Fact.ERRORS.value and not facts.get("cpu") else None
    if error:
        return Manner(error=error["type"], message=error["message"])
    return Manner(check=first.check.value) if first else SEVERAL


class _Left:
    """The failing cells that no cause explains yet, by the kernels that may explain them."""

    def __init__(self, failing: Sequence[FailingCell], evidence: Evidence) -> None:
        self._evidence = evidence
        self._cells: dict[Suspect, dict[CellId, FailingCell]] = defaultdict(dict)
        self._overloads: dict[Suspect, Counter[str]] = defaultdict(Counter)  # number of cells by overload
        self._depth: dict[Suspect, int] = defaultdict(int)  # the latest place at which a case calls the kernel
        for f in failing:
            for suspect in evidence.suspects[f.cell]:
                self._cells[suspect][f.cell] = f
                self._overloads[suspect][f.cell.overload] += 1
                place = f.kernels.index(suspect.kernel) + 1 if suspect.kernel in f.kernels else 0
                self._depth[suspect] = max(self._depth[suspect], place)

    def best(self) -> Suspect | None:
        """Return the suspect that explains most; None if no cell is left."""
        may_stand = (s for s, cells in self._cells.items() if self._evidence.may_stand(s.kernel, cells))
        return min(may_stand, key=self._rank, default=None)

    def take(self, suspect: Suspect) -> list[FailingCell]:
        """Remove the cells that a suspect explains, and return them."""
        taken = list(self._cells[suspect].values())
        for f in taken:
            for other in self._evidence.suspects[f.cell]:
                del self._cells[other][f.cell]
                self._overloads[other][f.cell.overload] -= 1
                if not self._overloads[other][f.cell.overload]:
                    del self._overloads[other][f.cell.overload]
                if not self._cells[other]:
                    del self._cells[other]
        return taken

    def _rank(self, suspect: Suspect) -> tuple[int, int, bool, bool, int, str]:
        overloads, cells = len(self._overloads[suspect]), len(self._cells[suspect])
        cleared = suspect.kernel in self._evidence.cleared
        return -overloads, -cells, suspect.kernel != FALLBACK, cleared, -self._depth[suspect], str(suspect)


def _cause(kernel: str, explained: Sequence[FailingCell], passed: Mapping[str, Sequence[CellId]]) -> Cause:
    example = min(explained, key=lambda f: (f.cell.operator != kernel, len(f.kernels), f.elements, str(f.cell)))
    own = [f.cell for f in explained if f.cell.operator == kernel] or [f.cell for f in explained]
    others = [cell for operator in {cell.operator for cell in own} for cell in passed.get(operator, ())]
    cells = tuple(sorted((f.cell for f in explained), key=str))
    case, manner = example.case or str(example.cell), _manner_of_all(explained)
    return Cause(kernel, cells, case, example.cell, _contrasts(own, others), example.setting, manner)


def _manner_of_all(cells: Iterable[FailingCell]) -> Manner:
    """Return the manner in which all cells fail: only its ``kind`` if the rest differs, SEVERAL if the kinds differ."""
    manners = {f.manner for f in cells}
    kinds = {manner.kind for manner in manners}
    if len(kinds) > 1:
        return SEVERAL
    return (manners if len(manners) == 1 else kinds).pop()


def _contrasts(failing: Sequence[CellId], passing: Sequence[CellId]) -> tuple[Contrast, ...]:
    """Return a contrast for each axis along which some values only pass."""
    found = []
    for axis in AXES:
        bad = sorted({str(getattr(cell, axis)) for cell in failing})
        good = sorted({str(getattr(cell, axis)) for cell in passing} - set(bad))
        if good:
            found.append(Contrast(axis, tuple(bad), tuple(good)))
    return tuple(found)
