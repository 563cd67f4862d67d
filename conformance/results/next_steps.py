"""The next steps for a backend: the fixes and kernels with which more cells run and agree with CPU. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.layouts import CONTEXTS
from conformance.models import needs
from conformance.models.model import Below, ModelCall, Recording
from conformance.models.needs import Served, Use
from conformance.records import Observation
from conformance.results import causes
from conformance.vocabulary import CellId, Route, Status, Word

# The layouts whose cells are about contiguous calls of models, and those whose cells are about no call of a model.
_CONTIGUOUS = frozenset({"contiguous", "sizes", "sizes_large", "values", "variants", "sequence"})
_OF_NO_MODEL = frozenset({*CONTEXTS, "conj", "neg", "zero_size", "zero_dim"})


class Action(Word):
    """The action of a step."""

    PRIMITIVE = "primitive", "fix a primitive that the bring-up gate found broken"
    FIX = "fix", "fix a kernel that fails or crashes"
    IMPLEMENT = "implement", "write a kernel for an operator that has none"
    NATIVE = "native", "write a kernel for an operator that a fallback serves"


class Order(Word):
    """The order of steps."""

    MODELS = (
        "models",
        "most calls of recorded models first, then most cells, then fallbacks by the bytes that they copy",
    )
    CELLS = "cells", "most cells first"
    CALLS = "calls", "most calls of recorded models first, fallbacks among them"
    BYTES = "bytes", "most bytes that a fallback copies first"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``cells`` is the number of cells that fail or cannot run until the step is done."""

    action: Action
    what: str  # a primitive; an operator, without the underscore of its in-place form; or the fallback
    cells: int
    overloads: tuple[str, ...] = ()
    example: str = ""  # the id of a failing case
    note: str = ""  # what is wrong with a primitive
    models: Mapping[str, int] = field(default_factory=dict)  # calls of recorded models that need the step, by model
    copied: int = 0  # bytes that the fallback copies in these calls

    @property
    def calls(self) -> int:
        """The calls of all recorded models that need the step."""
        return sum(self.models.values())

    def to_json(self) -> dict[str, Any]:
        """Return the step as a record for JSON."""
        return {
            "action": self.action.value, "what": self.what, "cells": self.cells, "calls": self.calls,
            "bytes": self.copied, "models": dict(self.models), "overloads": list(self.overloads),
            "example": self.example, "note": self.note,
        }  # fmt: skip


@dataclass(frozen=True)
class Models:
    """The recorded models, and the known routes by which the backend serves their calls."""

    recordings: Sequence[Recording] = ()
    routes: Mapping[str, str] = field(default_factory=dict)  # of overloads
    below: Below = field(default_factory=dict)

    @property
    def served(self) -> Served:
        """The routes of the models' calls."""
        return Served(self.routes, self.below)


def steps(
    observations: Iterable[Observation], limits: Sequence[Mapping[str, Any]] = (), models: Models = Models(),
    order: Order = Order.MODELS,
) -> list[Step]:  # fmt: skip
    """Return the steps, sorted by ``order``. ``limits``: the broken primitives in the run's summary.

    The overloads of one operator are one step, because most backends derive all forms of an operator from one kernel.
    """
    ran = list(observations)
    served = replace(models, routes={**_routes(ran), **models.routes}).served
    found = [Step(Action.PRIMITIVE, o["primitive"], o["cells"], note=o["headline"]) for o in limits]
    affected = _Affected(models.recordings, served, ran)
    found += [
        Step(Action.FIX, c.kernel, len(c.cells), c.overloads, c.example, models=affected.by(c.cells))
        for c in causes.of_run(ran)
    ]
    found += _to_implement(ran, needs.lacking(models.recordings, served))
    found += _to_make_native(needs.falling_back(models.recordings, served))
    return sorted(found, key=lambda step: (*_place(step, order), step.what))


def _place(step: Step, order: Order) -> tuple[int, ...]:
    """Return the key by which steps are sorted."""
    last, action = step.action is Action.NATIVE, list(Action).index(step.action)
    if order is Order.CELLS:
        return -step.cells, -step.calls, action
    if order is Order.CALLS:
        return -step.calls, -step.cells, action
    if order is Order.BYTES:
        return -step.copied, -step.calls, -step.cells, action
    return (
        step.action is not Action.PRIMITIVE, last, -step.copied if last else -step.calls, -step.cells, action,
    )  # fmt: skip


def _routes(observations: Iterable[Observation]) -> dict[str, str]:
    return {o.cell.overload: o.route for o in observations if o.route and not o.cell.is_scenario}


class _Affected:
    """The calls of recorded models that failing cells are about: calls that reach their overload, in their dtype.

    A contiguous call counts only for cells with a contiguous layout. If a run has no cell of the overload in the dtypes
    of a call, cells in other dtypes count.
    """

    def __init__(self, recordings: Iterable[Recording], served: Served, ran: Iterable[Observation]) -> None:
        self._recordings = recordings
        self._served = served
        self._tried = {(o.cell.overload, o.cell.dtype) for o in ran}

    def by(self, cells: Iterable[CellId]) -> dict[str, int]:
        """Return the number of calls by model."""
        failing: dict[str, list[CellId]] = defaultdict(list)
        for cell in cells:
            if not cell.is_scenario and cell.layout not in _OF_NO_MODEL:
                failing[cell.overload].append(cell)
        counts: Counter[str] = Counter()
        for recording in self._recordings if failing else ():
            for call in recording.calls:
                reached = self._served.reached(call.overload) & failing.keys()
                if any(self._is_about(cell, call) for overload in reached for cell in failing[overload]):
                    counts[recording.name] += call.count
        return dict(counts)

    def _is_about(self, cell: CellId, call: ModelCall) -> bool:
        if call.is_contiguous and cell.layout not in _CONTIGUOUS:
            return False
        tried = {dtype for dtype in call.dtypes if (cell.overload, dtype) in self._tried}
        return cell.dtype in tried or not tried


def _to_implement(ran: Iterable[Observation], needed: Mapping[str, Use]) -> list[Step]:
    lacking: dict[str, Counter[str]] = {operator: Counter() for operator in needed}
    for o in ran:
        if o.status is Status.UNSUPPORTED and o.route == Route.UNSUPPORTED:
            lacking.setdefault(needs.operator_of(o.cell.overload), Counter())[o.cell.overload] += 1
    return [_implement(operator, cells, needed.get(operator, Use())) for operator, cells in lacking.items()]


def _implement(operator: str, cells: Mapping[str, int], use: Use) -> Step:
    overloads = tuple(sorted({*cells, *use.overloads}, key=lambda name: (-cells.get(name, 0), name)))
    return Step(Action.IMPLEMENT, operator, sum(cells.values()), overloads, models=dict(use.models))


def _to_make_native(found: Mapping[str, Use]) -> list[Step]:
    return [
        Step(Action.NATIVE, operator, 0, tuple(sorted(use.overloads)), models=dict(use.models), copied=use.copied)
        for operator, use in found.items()
    ]


def waiting(observations: Iterable[Observation]) -> int:
    """Return the number of cells of composites that cannot run because an operator below them has no kernel."""
    return sum(o.status is Status.UNSUPPORTED and o.route == Route.COMPOSITE and not o.signal for o in observations)
