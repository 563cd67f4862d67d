"""Whether a device draws numbers that CPU never draws. Pure."""

from __future__ import annotations

import math

import torch

from conformance.judging.distribution import ALPHA, differs
from conformance.judging.draws import Draws, flat, have_one_shape
from conformance.records import Mismatch
from conformance.vocabulary import Fact

#: Below this chance more calls are made: in a tenth of all clean cases.
DOUBTFUL = 0.1
#: The most numbers of a result that are looked at.
MOST = 4096

#: What is so near to a whole number may be one: a device may scale what it draws by a quotient.
NEARLY = 0.05

#: Of calls behind those that tell which numbers are drawn: how many have another one, and how many there are.
Counts = tuple[int, int]


def compare(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if CPU's calls give whole numbers, and the device's give others in that row, or fractions.

    The first half of CPU's calls tells which numbers a row may have. Those behind tell how often one is missing there
    by chance.
    """
    counts = _fractions(expected, actual)
    if counts is None:
        counts = _counts(expected, actual)
        if counts is None or _chance(*counts) >= ALPHA:
            return None
    (theirs, of_theirs), (ours, of_ours) = counts
    return differs(subject, Fact.FOREIGN_DRAWS, calls=ours, of=of_ours, cpu_calls=theirs, cpu_of=of_theirs)


def may_differ(expected: Draws, actual: Draws) -> bool:
    """Whether so few calls leave it open: the device's are unlike CPU's, though chance is not ruled out."""
    counts = _counts(expected, actual)
    return counts is not None and ALPHA <= _chance(*counts) < DOUBTFUL


def is_of_numbers(draws: torch.Tensor) -> bool:
    """Whether a result is of whole numbers, and of few enough.

    Where a dtype has no fractions any more, a whole number may be one that was rounded.
    """
    return 0 < draws.numel() <= MOST and _are_whole(flat(draws), draws.dtype)


def _are_few(expected: Draws, actual: Draws) -> bool:
    """Whether both sides draw results of one shape, with as many numbers as are looked at."""
    return have_one_shape(expected, actual) and 0 < expected.results[0].numel() <= MOST


def _are_whole(values: torch.Tensor, dtype: torch.dtype) -> bool:
    most = 1 / torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 2.0**53
    return bool(((values == values.round()) & (values.abs() < most)).all())


def _fractions(expected: Draws, actual: Draws) -> tuple[Counts, Counts] | None:
    """Return how many calls have fractions, if only the device's have some: that is no chance."""
    if expected.are_constant or not _are_few(expected, actual) or not _are_whole(expected.matrix, expected.dtype):
        return None
    ours = ((actual.matrix - actual.matrix.round()).abs() > NEARLY).any(1)
    return ((0, len(expected)), (int(ours.sum()), len(ours))) if ours.any() else None


def _counts(expected: Draws, actual: Draws) -> tuple[Counts, Counts] | None:
    """Return the counts of CPU and of the device. None for draws that are not whole, or the same in each call."""
    if expected.are_constant or actual.are_constant or not _are_few(expected, actual):
        return None
    shape, half = expected.results[0].shape, len(expected) // 2
    both = torch.cat((expected.matrix, actual.matrix))
    if not _are_whole(both, expected.dtype):
        return None
    numbers, keys = both.unique(return_inverse=True)
    rows = shape[:-1].numel()
    row = torch.arange(keys.shape[1]) * rows // keys.shape[1]
    in_rows, keys = (keys + row * len(numbers)).unique(return_inverse=True)
    is_known = torch.zeros(len(in_rows), dtype=torch.bool)
    is_known[keys[:half]] = True
    has_others = ~is_known[keys].all(1)
    theirs, ours = has_others[half : len(expected)], has_others[len(expected) :]
    return (int(theirs.sum()), len(theirs)), (int(ours.sum()), len(ours))


def _chance(theirs: Counts, ours: Counts) -> float:
    """Return the chance that the device has so many of these calls, or more, of all that both sides have."""
    (theirs_have, of_theirs), (ours_have, of_ours) = theirs, ours
    have, of_all = theirs_have + ours_have, of_theirs + of_ours
    ways = sum(math.comb(of_ours, k) * math.comb(of_theirs, have - k) for k in range(ours_have, min(have, of_ours) + 1))
    return ways / math.comb(of_all, have)
