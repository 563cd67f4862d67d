"""The operators that a backend does not implement, by the calls of recorded models that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.models import file, needs
from conformance.models.model import Below, Recording
from conformance.models.needs import Served
from conformance.support.wording import counted
from conformance.vocabulary import Route

SHOWN = 5  # operators


@dataclass(frozen=True, slots=True)
class Unimplemented:
    """An operator without a kernel. ``models``: the calls that need it, by recorded model, most calls first."""

    operator: str
    models: Mapping[str, int]
    standing: int  # number of overloads of other operators, with known routes, that cannot run without it

    @property
    def calls(self) -> int:
        """The calls of all models."""
        return sum(self.models.values())

    def to_json(self) -> dict[str, Any]:
        """Return the record for JSON."""
        return {"operator": self.operator, "calls": self.calls, "models": dict(self.models), "standing": self.standing}


def of_summary(summary: Mapping[str, Any]) -> list[Unimplemented]:
    """Return the operators without a kernel that the suite's recorded models need in a run.

    Return none for a summary without routes.
    """
    routes: Mapping[str, str] = summary.get("routes") or {}
    if Route.UNSUPPORTED.value not in routes.values():
        return []
    return unimplemented(routes, file.load_all(), file.below())


def unimplemented(routes: Mapping[str, str], recordings: Sequence[Recording], below: Below) -> list[Unimplemented]:
    """Return the operators that calls of the models need and that have no kernel, those with most calls first."""
    served = Served(routes, below)
    uses = needs.lacking(recordings, served)
    found = [_unimplemented(operator, use.models, routes, served) for operator, use in uses.items()]
    return sorted(found, key=lambda u: (-u.calls, u.operator))


def _unimplemented(
    operator: str, models: Mapping[str, int], routes: Mapping[str, str], served: Served
) -> Unimplemented:
    others = [name for name in routes if needs.operator_of(name) != operator]
    standing = sum(operator in map(needs.operator_of, served.lacking(name)) for name in others)
    return Unimplemented(operator, most_first(models), standing)


def most_first(models: Mapping[str, int]) -> dict[str, int]:
    """Return the models with most calls first."""
    return dict(sorted(models.items(), key=lambda item: (-item[1], item[0])))


def text(found: Sequence[Unimplemented]) -> str:
    """Return a line for each of the first operators, "" if there is none."""
    if not found:
        return ""
    lines = ["not implemented, most calls of recorded models first (`conformance next` has all):"]
    lines += [f"  {line(u)}" for u in found[:SHOWN]]
    return "\n".join([*lines, *([f"  ... and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])])


def line(found: Unimplemented) -> str:
    """Return an operator with the calls that need it, e.g. ``convolution_overrideable: 289 calls of resnet; ...``."""
    calls = f"{counted(found.calls, 'call')} of {', '.join(found.models)}"
    return f"{found.operator}: {calls}; {counted(found.standing, 'other overload')} cannot run without it"
