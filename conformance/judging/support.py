"""Whether a device draws numbers that CPU never draws. Pure."""

from __future__ import annotations

import math

import torch

from conformance.judging.distribution import ALPHA, constant, differs, flat
from conformance.records import Mismatch
from conformance.vocabulary import Fact

#: Below this chance more calls are made: in a tenth of all clean cases.
DOUBTFUL = 0.1
#: The most numbers of a result that are looked at.
MOST = 4096

#: A number that is drawn, with its row.
Number = tuple[int, float]
#: Of calls behind those that tell which numbers are drawn: how many have another one, and how many there are.
Counts = tuple[int, int]


def compare(expected: list[torch.Tensor], actual: list[torch.Tensor], subject: str) -> Mismatch | None:
    """Return a mismatch if calls on the device give whole numbers that CPU's calls do not give in that row.

    The first half of CPU's calls tells which numbers a row may have. Those behind tell how often one is missing there
    by chance. ``expected``, ``actual``: the draws, one tensor a seed.
    """
    counts = _counts(expected, actual)
    if counts is None or _chance(*counts) >= ALPHA:
        return None
    (theirs, of_theirs), (ours, of_ours) = counts
    return differs(subject, Fact.FOREIGN_DRAWS, calls=ours, of=of_ours, cpu_calls=theirs, cpu_of=of_theirs)


def may_differ(expected: list[torch.Tensor], actual: list[torch.Tensor]) -> bool:
    """Whether so few calls leave it open: the device's are unlike CPU's, though chance is not ruled out."""
    counts = _counts(expected, actual)
    return counts is not None and ALPHA <= _chance(*counts) < DOUBTFUL


def is_of_numbers(draws: torch.Tensor) -> bool:
    """Whether a result is of whole numbers, and of few enough."""
    return _numbered(draws) is not None


def _counts(expected: list[torch.Tensor], actual: list[torch.Tensor]) -> tuple[Counts, Counts] | None:
    """Return the counts of CPU and of the device. None for draws that are not whole, or the same in each call."""
    if len(expected) < 2 or constant(expected) or constant(actual):
        return None
    theirs, ours = ([_numbered(draws) for draws in side] for side in (expected, actual))
    if any(numbers is None for numbers in (*theirs, *ours)):
        return None
    half = len(theirs) // 2
    known = {number for numbers in theirs[:half] for number in numbers or ()}

    def of(side: list[set[Number] | None]) -> Counts:
        return sum(not known.issuperset(numbers or ()) for numbers in side), len(side)

    return of(theirs[half:]), of(ours)


def _numbered(draws: torch.Tensor) -> set[Number] | None:
    """Return each number of a result with its row; None of too many, or of fractions. A row is the last dimension.

    Where a dtype has no fractions any more, a whole number may be one that was rounded.
    """
    if not 0 < draws.numel() <= MOST:
        return None
    values = flat(draws)
    most = 1 / torch.finfo(draws.dtype).eps if draws.is_floating_point() or draws.is_complex() else 2.0**53
    if not bool(((values == values.round()) & (values.abs() < most)).all()):
        return None
    length = draws.shape[-1] if draws.dim() else 1
    return {(at // length, value) for at, value in enumerate(values.tolist())}


def _chance(theirs: Counts, ours: Counts) -> float:
    """Return the chance that the device has so many of these calls, or more, of all that both sides have."""
    (theirs_have, of_theirs), (ours_have, of_ours) = theirs, ours
    have, of_all = theirs_have + ours_have, of_theirs + of_ours
    ways = sum(math.comb(of_ours, k) * math.comb(of_theirs, have - k) for k in range(ours_have, min(have, of_ours) + 1))
    return ways / math.comb(of_all, have)
