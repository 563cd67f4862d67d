"""What to mend or implement next: the steps that let most cells of a run agree with CPU. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.records import Observation
from conformance.results import causes
from conformance.vocabulary import Route, Status, Word


class Action(Word):
    """What a step does."""

    PRIMITIVE = "primitive", "mend a primitive that the bring-up gate found broken"
    MEND = "mend", "mend a kernel that fails or crashes"
    IMPLEMENT = "implement", "write a kernel for an operator that has none"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``cells`` is the number of cells that are not right until it is done."""

    action: Action
    what: str  # a primitive; an operator, without the underscore of its in-place form; or the fallback
    cells: int
    overloads: tuple[str, ...] = ()
    example: str = ""  # the id of a failing case
    note: str = ""  # what is wrong with a primitive


def steps(observations: Iterable[Observation], limits: Sequence[Mapping[str, Any]] = ()) -> list[Step]:
    """Return the steps, those with most cells first. ``limits``: those of the run's summary.

    Overloads of one operator are one step, since most backends derive its forms from one kernel.
    """
    ran = list(observations)
    found = [Step(Action.PRIMITIVE, o["primitive"], o["cells"], note=o["headline"]) for o in limits]
    found += [Step(Action.MEND, c.kernel, len(c.cells), c.overloads, c.example) for c in causes.of_run(ran)]
    order = list(Action)
    return sorted([*found, *_to_implement(ran)], key=lambda step: (-step.cells, order.index(step.action), step.what))


def _to_implement(ran: Iterable[Observation]) -> list[Step]:
    lacking: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for o in ran:
        if o.status is Status.UNSUPPORTED and o.route == Route.UNSUPPORTED:
            lacking[_form(o.cell.operator)][o.cell.overload] += 1
    return [_implement(operator, cells) for operator, cells in lacking.items()]


def _implement(operator: str, cells: Mapping[str, int]) -> Step:
    overloads = tuple(sorted(cells, key=lambda name: (-cells[name], name)))
    return Step(Action.IMPLEMENT, operator, sum(cells.values()), overloads)


def _form(operator: str) -> str:
    """Return the operator of an in-place form: ``masked_fill`` for ``masked_fill_``; ``__and__`` stays."""
    return operator if operator.endswith("__") else operator.removesuffix("_")


def waiting(observations: Iterable[Observation]) -> int:
    """Return the number of cells of composites that cannot run because an operator below them has no kernel."""
    return sum(o.status is Status.UNSUPPORTED and o.route == Route.COMPOSITE and not o.signal for o in observations)
