"""The suspects of each failing cell: the kernels that may be why it fails. Pure.

A kernel is a suspect if the cell's first failing case calls it, unless its own cells were tried and all agree with CPU.
The cell's own operator is always a suspect. torch composes some operators of others. A composed operator has no kernel,
so the kernels that it calls are suspects in its place. A kernel without failing cells of its own is a suspect only for
cells that fail alike. A kernel whose own cells have no wrong results is a suspect for a case that died only if it ran
at the time of the death, as far as native stacks show. The fallback serves many operators, so each group of cells that
fail alike has its own fallback suspect.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from conformance.records import ALONE, Setting
from conformance.vocabulary import CellId, Route

# The name of the backend's boxed fallback among the kernels of a cell that the fallback serves.
FALLBACK = "the fallback"


@dataclass(frozen=True, slots=True)
class Manner:
    """The way in which a cell fails: by a signal, by an error that the device alone raised, or by a difference."""

    signal: str = ""  # "timeout" if the case did not return
    error: str = ""  # the type of the error
    message: str = ""
    check: str = ""  # the first check that found a difference

    @property
    def ends_the_call(self) -> bool:
        """Whether the call gives no results: the case died, or the device alone raised an error."""
        return bool(self.signal or self.error)

    @property
    def kind(self) -> Manner:
        """The manner without the numbers and quoted names in the message, which depend on the arguments."""
        return replace(self, message=_OF_ARGUMENTS.sub("...", self.message)) if self.message else self


_OF_ARGUMENTS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
SEVERAL = Manner()  # the manner of cells that fail in several ways


@dataclass(frozen=True, slots=True)
class FailingCell:
    """The facts of a failing cell by which its cause is found."""

    cell: CellId
    case: str  # the first failing case with known calls, else the first failing case
    kernels: tuple[str, ...]  # the operators that this case called on the device, in order, without the cell's own
    elements: int = 0  # number of elements of the case's largest argument
    route: str = Route.NATIVE
    on_cpu: bool = False  # whether CPU ran these kernels, because the case died on the device
    setting: Setting = ALONE  # what the case needs to fail again
    manner: Manner = SEVERAL
    stack: tuple[str, ...] = ()  # operators that ran when the case died, the innermost last; () if that is not known

    @property
    def alike(self) -> tuple[Manner, str]:
        """A key that cells which fail alike share. Each program whose results differ has a key of its own."""
        program = str(self.cell) if self.cell.is_scenario and not self.manner.ends_the_call else ""
        return self.manner.kind, program


class Suspect(NamedTuple):
    """A kernel that may be why a cell fails. There is one suspect for each manner of failing by the fallback."""

    kernel: str  # an operator, or FALLBACK
    manner: Manner = SEVERAL
    program: str = ""  # the program whose results differ, if it calls the fallback


class PassingCell(NamedTuple):
    """A cell that agrees with CPU, and its route."""

    cell: CellId
    route: str


class Evidence:
    """The evidence about kernels in the failing and the passing cells of a run."""

    def __init__(self, failing: Sequence[FailingCell], passing: Collection[PassingCell]) -> None:
        routes = {(f.cell.operator, f.route) for f in failing}
        self._failing = {operator for operator, _ in routes}
        self._fall_back = {operator for operator, route in routes if route == Route.FALLBACK}
        routes |= {(cell.operator, route) for cell, route in passing}
        kernels = {operator for operator, route in routes if route != Route.COMPOSITE}
        self._composed = {operator for operator, _ in routes} - kernels
        failing = _by_stacks(failing)
        # Operators whose cells all agree with CPU.
        self.cleared = {cell.operator for cell, _ in passing} - self._failing
        self._untried = _untried(failing, self._failing, self.cleared)
        self._below = self._below_composed(failing)
        self._sole: set[str] = (
            set()
        )  # kernels that are the only one not cleared of those that a composed operator calls
        named = _without_unlike(failing, {f.cell: self._suspects(f) for f in failing}, self._failing)
        self.suspects = {f.cell: frozenset(_suspect(kernel, f) for kernel in named[f.cell]) for f in failing}

    def may_stand(self, kernel: str, cells: Iterable[CellId]) -> bool:
        """Return whether a kernel may be named as the cause of these cells.

        A kernel with failing cells of its own may be named, and so may the fallback. Any other kernel has to explain
        cells of several operators, because a single operator is the better name for its own failures. The exception is
        the only kernel that is not cleared among those that a composed operator calls.
        """
        if kernel in self._failing or kernel == FALLBACK or kernel in self._sole:
            return True
        return len({cell.operator for cell in cells}) > 1

    def _suspects(self, f: FailingCell) -> frozenset[str]:
        own = f.cell.operator
        called = self._called(f)
        if {own, *called} & self._fall_back:
            called.add(FALLBACK)
        if own in self._composed and not called:
            called = self._kernels_of(f)
            if len(called - self.cleared) == 1:
                self._sole |= called - self.cleared
        return frozenset({own, *called})

    def _called(self, f: FailingCell) -> set[str]:
        """Return the suspects that a cell calls. The suspects below a composed operator replace the operator."""
        called = set(f.kernels) & (self._failing | self._untried)
        for operator in called & self._composed:
            below = self._below[operator]
            called |= below if f.on_cpu else below & set(f.kernels)  # CPU may run another kernel than the device
            if below & called:
                called.discard(operator)
        return called

    def _below_composed(self, failing: Iterable[FailingCell]) -> dict[str, set[str]]:
        """Return for each failing operator that torch composes the suspects with a kernel that its failing cells call.

        If there are none, return all kernels that these cells call.
        """
        found: dict[str, set[str]] = defaultdict(set)
        for f in failing:
            if f.cell.operator in self._composed:
                kernels = self._kernels_of(f)
                found[f.cell.operator] |= kernels & (self._failing | self._untried) or kernels
        return found

    def _kernels_of(self, f: FailingCell) -> set[str]:
        """Return the kernels that a cell calls, without composed operators.

        If none of them is a suspect, one of them is wrong in a way that its own cells do not show.
        """
        return set(f.kernels) - self._composed


def _suspect(kernel: str, f: FailingCell) -> Suspect:
    return Suspect(kernel, *f.alike) if kernel == FALLBACK else Suspect(kernel)


def _by_stacks(failing: Sequence[FailingCell]) -> list[FailingCell]:
    """Return the cells. For cells that died, the kernels are those that native stacks do not exclude.

    A kernel that returned before the death may have damaged memory, but then its own cells usually have wrong results.
    Therefore, only kernels on the stack and kernels with wrong results are kept. If the stack is unknown, the kernels
    are excluded that had returned in every death with a known stack.
    """
    wrong = {o for o, manners in _own_manners(failing).items() if not all(m.ends_the_call for m in manners)}
    on_stacks = {kernel for f in failing for kernel in f.stack}
    returned = {kernel for f in failing if f.stack for kernel in f.kernels} - on_stacks - wrong
    found = []
    for f in failing:
        if f.stack:
            kept = [k for k in f.kernels if k in wrong and k not in f.stack]
            f = replace(f, kernels=(*kept, *f.stack), on_cpu=False)  # noqa: PLW2901
        elif f.manner.signal:
            f = replace(f, kernels=tuple(k for k in f.kernels if k not in returned))  # noqa: PLW2901
        found.append(f)
    return found


def _untried(cells: Iterable[FailingCell], failing: Collection[str], passed: Collection[str]) -> set[str]:
    """Return the kernels without cells of their own that may be broken.

    The last operator with own cells that began before such a kernel is usually its caller. If all cells of the caller
    agree with CPU, the kernel works in this call. The kernel may be broken if its caller has failing cells in at least
    half of the calls.
    """
    votes: dict[str, list[bool]] = defaultdict(list)
    for f in cells:
        caller_fails = True  # the first caller is the cell's own operator
        for kernel in f.kernels:
            if kernel in failing or kernel in passed:
                caller_fails = kernel in failing
            else:
                votes[kernel].append(caller_fails)
    return {kernel for kernel, fails in votes.items() if 2 * sum(fails) >= len(fails)}


def _without_unlike(
    failing: Sequence[FailingCell], suspects: Mapping[CellId, frozenset[str]], own_fail: Collection[str]
) -> dict[CellId, frozenset[str]]:
    """Return the suspects, without the kernels that cannot make a cell fail in its manner.

    If a kernel never gives wrong results, but dies or raises errors, its callers fail in the same manners. If none of a
    kernel's own cells fails, it stays a suspect only of cells that fail alike: if there are several groups of them, of
    the group with the most operators. Cells of which some raise an error and others die have little in common besides
    calls that most operators make.
    """
    own = _own_manners(failing)
    alike: dict[str, dict[tuple[Manner, str], list[CellId]]] = defaultdict(lambda: defaultdict(list))
    kept = {}
    for f in failing:
        named = suspects[f.cell]
        kept[f.cell] = frozenset(k for k in named if k == f.cell.operator or _may_cause(own.get(k, ()), f.manner))
        for kernel in named - {FALLBACK, *own_fail}:
            alike[kernel][f.alike].append(f.cell)
    for kernel, cells in alike.items():
        most = max(cells, key=lambda key: (len({c.operator for c in cells[key]}), len(cells[key]), str(key)))
        for cell in (cell for key in cells if key != most for cell in cells[key]):
            kept[cell] -= {kernel}
    return kept


def _own_manners(failing: Iterable[FailingCell]) -> dict[str, set[Manner]]:
    """Return how the cells of each operator fail."""
    found: dict[str, set[Manner]] = defaultdict(set)
    for f in failing:
        found[f.cell.operator].add(f.manner.kind)
    return found


def _may_cause(own: Collection[Manner], manner: Manner) -> bool:
    """Return whether a kernel whose cells fail in the manners ``own`` may make a caller fail in ``manner``.

    Wrong results may lead to any manner.
    """
    if not own or not all(m.ends_the_call for m in own):
        return True
    return manner.kind in own or bool(manner.signal and any(m.signal for m in own))
