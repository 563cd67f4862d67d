"""Failing cells put together as people think of them: an overload that fails in one way, in whatever dtype and lane."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.records import Observation
from conformance.results.causes import Cause


@dataclass(frozen=True, slots=True)
class Failing:
    """One cell that fails in one lane, and is not expected to."""

    lane: str
    backend: str
    seen: Observation
    flaky: str = ""  # why it counts as flaky
    cause: Cause | None = None  # what explains it among the failures of its lane

    @property
    def overload(self) -> str:
        return self.seen.cell.overload

    @property
    def cell(self) -> str:
        return str(self.seen.cell)

    @property
    def case(self) -> str:
        """The first that fails, or ""."""
        return self.seen.failures[0].case if self.seen.failures else ""

    @property
    def family(self) -> str:
        """E.g. ``masked_fill_.Scalar: fail (value)``; an issue's title, and what it is known by from night to night."""
        return f"{self.overload}: {self.seen.kind}"


def by_family(failing: Iterable[Failing]) -> dict[str, list[Failing]]:
    """The cells of each family, in order of lane and cell; the families by name."""
    found: dict[str, list[Failing]] = defaultdict(list)
    for one in failing:
        found[one.family].append(one)
    return {name: sorted(found[name], key=lambda f: (f.lane, f.cell)) for name in sorted(found)}


def kernel(family: Iterable[Failing]) -> str:
    """Return the kernel that explains most cells of a family; "" where no cause is known."""
    counts = Counter(f.cause.kernel for f in family if f.cause)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def largest(failing: Iterable[Failing]) -> dict[str, tuple[Failing, Cause]]:
    """Return the cause that explains most, over all lanes, for each kernel that explains some of these cells.

    With each, a cell of its lane.
    """
    found: dict[str, tuple[Failing, Cause]] = {}
    for one in failing:
        if one.cause is None:
            continue
        known = found.get(one.cause.kernel)
        if known is None or len(known[1].cells) < len(one.cause.cells):
            found[one.cause.kernel] = (one, one.cause)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1][1].cells), item[0])))
