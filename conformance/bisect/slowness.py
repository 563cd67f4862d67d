"""The decision whether a call is slower at a point than at the good end. Pure, and without torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.perf import interval
from conformance.perf.interval import Interval
from conformance.perf.model import Key, Round, Size
from conformance.vocabulary import Word

PAIRS = 5  # of processes: one at the good end and one at the point
MOST_PAIRS = 20  # pairs after which an undecided answer is CANNOT_TELL
LEAST = 0.1

_CASE = re.compile(r"(?P<overload>[\w.]+)\[(?P<dtype>\w+)-(?P<size>\w+)\]")


class Pace(Word):
    """The relation of a call's time at a point to its time at the good end."""

    SLOW = "slow", "the whole interval of the ratio lies above 1 + the least change"
    NOT_SLOW = "not slow", "the whole interval lies below 1 + the least change"
    CANNOT_TELL = "cannot tell", "1 + the least change lies in the interval"


@dataclass(frozen=True, slots=True)
class Judged:
    """The pace of a call, and the interval of the ratio of its time to its time at the good end."""

    pace: Pace
    interval: Interval


def judge(good: Sequence[Round], here: Sequence[Round], least: float, *, same_torch: bool) -> Judged:
    """Return the pace of a call from a round of each process at the good end and at a point.

    With the same torch on both sides, ratios to CPU's time are compared, in which the load of the machine cancels out.
    Between two versions of torch, CPU's own time may change, so the device's times are compared.
    """
    found = interval.of_ratio(_times(good, same_torch), _times(here, same_torch))
    if found.low > 1 + least:
        return Judged(Pace.SLOW, found)
    return Judged(Pace.NOT_SLOW if found.high < 1 + least else Pace.CANNOT_TELL, found)


def _times(rounds: Sequence[Round], by_cpu: bool) -> list[Sequence[float]]:
    return [r.ratios if by_cpu else r.device for r in rounds]


def parse(case: str) -> tuple[str, str, str] | None:
    """Return the overload, dtype and size of a case as ``perf diff`` prints it, None for another text."""
    found = _CASE.fullmatch(case)
    return (found["overload"], found["dtype"], found["size"]) if found else None


def key_of(case: str) -> Key:
    """Return the key of a case. Raises ValueError for another text and for an unknown size."""
    found = parse(case)
    if found is None:
        raise ValueError(f"{case!r} is not a case of `conformance perf`")
    overload, dtype, size = found
    return Key(overload, dtype, Size(size))
