"""Failing cells put together as people think of them: an overload that fails in one way, in whatever dtype and lane."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.vocabulary import Observation


@dataclass(frozen=True, slots=True)
class Failing:
    """One cell that fails in one lane, and is not expected to."""

    lane: str
    overload: str
    kind: str  # e.g. ``fail (stride, value)``
    cell: str
    case: str  # the first that fails, or ""
    message: str
    flaky: str = ""  # why it counts as flaky

    @property
    def family(self) -> str:
        """E.g. ``masked_fill_.Scalar: fail (value)``; an issue's title, and what it is known by from night to night."""
        return f"{self.overload}: {self.kind}"


def of(observation: Observation, lane: str, flaky: str = "") -> Failing:
    o = observation
    checks = sorted({f.check for f in o.failures if f.check})
    why = ", ".join([*checks, *([o.signal] if o.signal else [])])
    case, message = (o.failures[0].case, o.failures[0].message) if o.failures else ("", o.reason)
    kind = f"{o.status} ({why})" if why else str(o.status)
    return Failing(lane, o.cell.overload, kind, str(o.cell), case, message, flaky)


def by_family(failing: Iterable[Failing]) -> dict[str, list[Failing]]:
    """The cells of each family, in order of lane and cell; the families by name."""
    found: dict[str, list[Failing]] = defaultdict(list)
    for one in failing:
        found[one.family].append(one)
    return {name: sorted(found[name], key=lambda f: (f.lane, f.cell)) for name in sorted(found)}
