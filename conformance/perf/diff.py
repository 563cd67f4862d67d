"""The comparison of two measured runs: the cases that are slower, beyond the noise of both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.perf import interval
from conformance.perf.interval import Interval
from conformance.perf.model import Key, Record
from conformance.vocabulary import Word

LEAST = 0.1  # smaller relative changes of the time are not reported


class Change(Word):
    """The change of a case from the old run to the new run."""

    SLOWER = "slower", "the whole interval of the ratio lies above 1 + the least change"
    FASTER = "faster", "the whole interval of the ratio lies below 1 / (1 + the least change)"
    SAME = "same", "no difference beyond noise"
    LOST = "lost", "it was measured, and now it is not"
    GAINED = "gained", "it was not measured, and now it is"
    OTHER = "other", "its arguments differ between the runs, so that times cannot be compared"


@dataclass(frozen=True, slots=True)
class Compared:
    """A case of both runs. ``interval``: of the ratio of the device's time to CPU's, new over old.

    ``interval`` is None if times cannot be compared, or if the ratio alone shows that the change is below the least.
    """

    old: Record
    new: Record
    change: Change
    interval: Interval | None = None

    @property
    def key(self) -> Key:
        return self.new.key


@dataclass(frozen=True, slots=True)
class Difference:
    """The cases that are in both runs, and the numbers of cases that are in only one."""

    cases: tuple[Compared, ...]
    only_old: int
    only_new: int

    def of(self, change: Change) -> list[Compared]:
        """Return the cases with this change, those with the largest factor first."""
        found = [c for c in self.cases if c.change is change]
        return sorted(found, key=lambda c: (-_factor(c), str(c.key)))

    @property
    def is_worse(self) -> bool:
        return any(c.change in (Change.SLOWER, Change.LOST) for c in self.cases)


def compare(old: Iterable[Record], new: Iterable[Record], least: float = LEAST) -> Difference:
    """Compare the cases of two runs. ``least``: the least relative change to report, e.g. 0.1 for ten percent."""
    before, after = ({r.key: r for r in records} for records in (old, new))
    both = [key for key in after if key in before]
    cases = tuple(_compared(before[key], after[key], least) for key in both)
    return Difference(cases, len(before) - len(both), len(after) - len(both))


def _compared(old: Record, new: Record, least: float) -> Compared:
    if not (old.is_measured and new.is_measured):
        gained = Change.GAINED if new.is_measured else Change.SAME
        return Compared(old, new, Change.LOST if old.is_measured else gained)
    if (old.sample, old.shapes) != (new.sample, new.shapes):
        return Compared(old, new, Change.OTHER)
    factor = new.ratio / old.ratio
    if 1 / (1 + least) <= factor <= 1 + least:  # the interval contains this factor
        return Compared(old, new, Change.SAME)
    found = interval.of_ratio(_ratios(old), _ratios(new))
    if found.low > 1 + least:
        return Compared(old, new, Change.SLOWER, found)
    return Compared(old, new, Change.FASTER if found.high < 1 / (1 + least) else Change.SAME, found)


def _ratios(record: Record) -> Sequence[Sequence[float]]:
    return [r.ratios for r in record.rounds]


def _factor(case: Compared) -> float:
    """Return the factor, at least 1, by which the time changed in either direction; 0 without an interval."""
    return max(case.interval.ratio, 1 / case.interval.ratio) if case.interval else 0.0
