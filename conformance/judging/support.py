"""Numbers that a device draws and CPU never draws. Pure."""

from __future__ import annotations

import math

import torch

from conformance.judging.distribution import ALPHA, differs
from conformance.judging.draws import Draws, flat, have_one_shape
from conformance.records import Mismatch
from conformance.vocabulary import Fact

#: More calls are made below this chance, which happens in a tenth of all clean cases.
DOUBTFUL = 0.1
#: The largest number of elements of a result that is examined.
MOST = 4096

#: A number this close to a whole number may be one: a device may scale its draws by a quotient.
NEARLY = 0.05

#: Among the calls after those that show which numbers are drawn: how many have another number, and how many there
#: are.
Counts = tuple[int, int]


def compare(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if CPU draws whole numbers, and the device fractions or numbers that CPU's rows lack.

    The first half of CPU's calls shows which numbers a row may have. The second half shows how often a number is
    missing from the first half by chance.
    """
    counts = _fractions(expected, actual)
    if counts is None:
        counts = _counts(expected, actual)
        if counts is None or _chance(*counts) >= ALPHA:
            return None
    (theirs, of_theirs), (ours, of_ours) = counts
    return differs(subject, Fact.FOREIGN_DRAWS, calls=ours, of=of_ours, cpu_calls=theirs, cpu_of=of_theirs)


def may_differ(expected: Draws, actual: Draws) -> bool:
    """Return whether more calls are needed: the device's draws are unlike CPU's, but chance is not ruled out."""
    counts = _counts(expected, actual)
    return counts is not None and ALPHA <= _chance(*counts) < DOUBTFUL


def is_of_numbers(draws: torch.Tensor) -> bool:
    """Return whether a result has at most `MOST` elements, all of them whole numbers.

    Numbers so large that their dtype has no fractions do not count, because they may have been rounded.
    """
    return 0 < draws.numel() <= MOST and _are_whole(flat(draws), draws.dtype)


def _are_few(expected: Draws, actual: Draws) -> bool:
    """Return whether both sides draw results of one shape, with at most `MOST` numbers."""
    return have_one_shape(expected, actual) and 0 < expected.results[0].numel() <= MOST


def _are_whole(values: torch.Tensor, dtype: torch.dtype) -> bool:
    most = 1 / torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 2.0**53
    return bool(((values == values.round()) & (values.abs() < most)).all())


def _fractions(expected: Draws, actual: Draws) -> tuple[Counts, Counts] | None:
    """Return the counts of calls with fractions if only the device's calls have them, which is no chance; else None."""
    if expected.are_constant or not _are_few(expected, actual) or not _are_whole(expected.matrix, expected.dtype):
        return None
    ours = ((actual.matrix - actual.matrix.round()).abs() > NEARLY).any(1)
    return ((0, len(expected)), (int(ours.sum()), len(ours))) if ours.any() else None


def _counts(expected: Draws, actual: Draws) -> tuple[Counts, Counts] | None:
    """Return the counts of CPU and of the device. None if draws are not whole, or are the same in each call."""
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
    """Return the chance that the device has at least so many of the calls with other numbers, if both draw alike."""
    (theirs_have, of_theirs), (ours_have, of_ours) = theirs, ours
    have, of_all = theirs_have + ours_have, of_theirs + of_ours
    ways = sum(math.comb(of_ours, k) * math.comb(of_theirs, have - k) for k in range(ours_have, min(have, of_ours) + 1))
    return ways / math.comb(of_all, have)
