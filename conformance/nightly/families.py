"""Families of failing cells: the cells of one overload that fail in the same way, in any dtype, layout and lane."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from conformance.records import Observation
from conformance.results.causes import Cause


@dataclass(frozen=True, slots=True)
class Failing:
    """One cell that fails unexpectedly in one lane."""

    lane: str
    backend: str
    seen: Observation
    flaky: str = ""  # the reason why it counts as flaky, if it does
    cause: Cause | None = None  # the cause in its lane that explains it

    @property
    def overload(self) -> str:
        return self.seen.cell.overload

    @property
    def cell(self) -> str:
        return str(self.seen.cell)

    @property
    def case(self) -> str:
        """The first failing case, "" if there is none."""
        return self.seen.failures[0].case if self.seen.failures else ""

    @property
    def family(self) -> str:
        """The family's name, e.g. ``masked_fill_.Scalar: fail (value)``. Later nights find its issue by this name."""
        return f"{self.overload}: {self.seen.kind}"


def by_family(failing: Iterable[Failing]) -> dict[str, list[Failing]]:
    """Return the cells of each family, sorted by lane and cell. The families are sorted by name."""
    found: dict[str, list[Failing]] = defaultdict(list)
    for one in failing:
        found[one.family].append(one)
    return {name: sorted(found[name], key=lambda f: (f.lane, f.cell)) for name in sorted(found)}


def kernel(family: Iterable[Failing]) -> str:
    """Return the kernel that explains most cells of a family, "" if no cause is known."""
    counts = Counter(f.cause.kernel for f in family if f.cause)
    return min(counts, key=lambda name: (-counts[name], name), default="")


def largest(failing: Iterable[Failing]) -> dict[str, tuple[Failing, Cause]]:
    """Return the cause with most cells, in any lane, for each kernel that explains some of these cells.

    With each cause comes one of these cells, from its lane. The largest causes come first.
    """
    found: dict[str, tuple[Failing, Cause]] = {}
    for one in failing:
        if one.cause is None:
            continue
        known = found.get(one.cause.kernel)
        if known is None or len(known[1].cells) < len(one.cause.cells):
            found[one.cause.kernel] = (one, one.cause)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1][1].cells), item[0])))
