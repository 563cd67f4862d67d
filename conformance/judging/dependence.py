"""Dependence of random draws on each other or on their position, where CPU's draws do not depend. Pure."""

from __future__ import annotations

import math
from functools import cache

import torch

from conformance.judging.distribution import ALPHA, differ, differs
from conformance.judging.draws import Draws, have_one_shape
from conformance.records import Mismatch
from conformance.vocabulary import Fact

#: Repeated blocks are searched in FOR_BLOCKS draws or more. At most IN_BLOCKS draws are searched: the first ones, and
#: BEHIND draws behind each of up to POWERS large powers of two, where a counter may start again.
FOR_BLOCKS = 700
IN_BLOCKS = 16_384
BEHIND = 1024
POWERS = 8
# An odd multiplier of a hash: the golden ratio in 64 bits, as a signed integer.
_MIX = 0x9E3779B97F4A7C15 - 2**64


def compare(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if the device's draws depend on each other as CPU's do not, else None."""
    expected, actual = expected.once(), actual.once()
    rules = (_repeated_in_row, stuck, _tied, _repeated_block)
    return next((found for rule in rules if (found := rule(expected, actual, subject))), None)


def _repeated_in_row(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if integers repeat in a row, where CPU draws without replacement.

    CPU counts as drawing without replacement if none of its rows repeats a number, and draws with replacement would
    seldom give such rows: for n numbers out of m, the chance is at most exp(-n (n - 1) / 2m) in each row.
    """
    if not all(_is_whole(t) and t.dim() and t.shape[-1] > 1 for t in (*expected.results, *actual.results)):
        return None
    ours, theirs = ([t.long().reshape(-1, t.shape[-1]) for t in draws.results] for draws in (actual, expected))
    span = max(int(rows.max()) for rows in theirs) - min(int(rows.min()) for rows in theirs) + 1
    chance = -sum(rows.numel() * (rows.shape[1] - 1) for rows in theirs) / 2 / span
    if chance > math.log(ALPHA) or any(map(_repeating, theirs)):
        return None
    repeating = sum(map(_repeating, ours))
    return differs(subject, Fact.REPEATED_DRAWS, rows=repeating, of=sum(map(len, ours))) if repeating else None


def _is_whole(tensor: torch.Tensor) -> bool:
    exact = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
    return exact and bool(tensor.numel())


def _repeating(rows: torch.Tensor) -> int:
    """Return the number of rows of a matrix that have a number twice."""
    ordered = rows.sort().values
    return int((ordered[:, 1:] == ordered[:, :-1]).any(1).sum())


def stuck(expected: Draws, actual: Draws, subject: str, places: torch.Tensor | None = None) -> Mismatch | None:
    """Return a mismatch if a position has one value in all calls, where CPU draws others.

    ``places``: the flat indices of the draws, if these are only a part of a result.
    """
    others = _others_of_stuck(expected, actual)
    told = others >= _fewest_others(len(actual), len(expected), others.numel())
    if not bool(told.any()):
        return None
    at = int(others.argmax())
    value, draws, place = float(actual.calls[0][at]), len(actual), at if places is None else int(places[at])
    facts = {"position": place, "value": value, "draws": draws, "others": int(others[at]), "positions": int(told.sum())}
    return differs(subject, Fact.STUCK_DRAWS, **facts)


def may_be_stuck(expected: Draws, actual: Draws) -> bool:
    """Return whether a position has one value in all calls, and too few other draws of CPU to rule out chance."""
    others = _others_of_stuck(expected, actual)
    return bool(others.any()) and int(others.max()) < _fewest_others(len(actual), len(expected), others.numel())


def _others_of_stuck(expected: Draws, actual: Draws) -> torch.Tensor:
    """Return, by position, how many of CPU's draws differ from the device's only value; 0 if it draws several.

    Return an empty tensor if the results differ in shape.
    """
    if not have_one_shape(expected, actual):
        return torch.zeros(0, dtype=torch.int64)
    ours = actual.matrix
    return differ(expected.matrix, ours[0], expected.dtype).sum(0) * (ours == ours[0]).all(0)


@cache
def _fewest_others(ours: int, theirs: int, positions: int) -> float:
    """Return how many of the other sampler's draws must differ from the only value of one sampler, to rule out chance.

    If both samplers draw alike, the chance that all n draws with other values are the other sampler's is at most
    ``comb(theirs, n) / comb(ours + theirs, n)``. This may happen at each position, with any of the values that are
    drawn.
    """
    tried = positions * (ours + theirs)
    counts = (n for n in range(1, theirs + 1) if tried * math.comb(theirs, n) <= ALPHA * math.comb(ours + theirs, n))
    return next(counts, math.inf)


def _tied(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if two positions, or two rows, have equal draws in all calls, where CPU's draws differ in most.

    Single draws from few values are often equal, but rows of such draws are not.
    """
    shape = actual.shape
    if shape is None or not have_one_shape(expected, actual) or not shape.numel():
        return None
    ours, theirs = actual.matrix, expected.matrix
    (calls, count), rows = ours.shape, shape[:-1].numel()
    if _would_tell(count, calls, len(theirs), len(theirs)) and (found := _tied_columns(ours, theirs, 1, subject)):
        return found
    if not shape or not _would_tell(rows, calls, len(theirs), len(theirs)):
        return None
    numbers = torch.cat((ours, theirs)).view(-1, count // rows).unique(dim=0, return_inverse=True)[1].view(-1, rows)
    return _tied_columns(numbers[:calls], numbers[calls:], count // rows, subject)


def _tied_columns(ours: torch.Tensor, theirs: torch.Tensor, length: int, subject: str) -> Mismatch | None:
    """Return a mismatch if two columns are equal in all rows (calls) of ``ours``, but not in most of ``theirs``."""
    groups = ours.unique(dim=1, return_inverse=True)[1]
    ordered, order = groups.sort(stable=True)
    (at,) = (ordered[1:] == ordered[:-1]).nonzero(as_tuple=True)
    if not at.numel():
        return None
    unequal = (theirs[:, order[at]] != theirs[:, order[at + 1]]).sum(0)
    best = int(unequal.argmax())
    if not _would_tell(ours.shape[1], len(ours), len(theirs), int(unequal[best])):
        return None
    first, second = int(order[at[best]]), int(order[at[best] + 1])
    facts = {"first": first * length, "second": second * length, "length": length}
    return differs(subject, Fact.TIED_DRAWS, **facts, calls=len(ours), unequal=int(unequal[best]))


def _would_tell(count: int, ours: int, theirs: int, unequal: int) -> bool:
    """Return whether chance is ruled out if a pair of draws is equal in all our calls, not in ``unequal`` of theirs."""
    pairs = count * (count - 1) / 2
    return pairs > 0 and pairs * _chance_of_tie(ours, theirs, unequal) <= ALPHA


@cache
def _chance_of_tie(ours: int, theirs: int, unequal: int) -> float:
    """Return the chance that two draws are equal in all ``ours`` calls, and not in ``unequal`` or more of ``theirs``.

    Let both samplers draw equal numbers with probability p. The chance is p ** ours times the tail of a binomial
    distribution, for the least favourable p.
    """
    p = torch.linspace(0, 1, 201, dtype=torch.float64).unsqueeze(1)
    n = torch.arange(unequal, theirs + 1, dtype=torch.float64)
    ways = math.lgamma(theirs + 1) - torch.lgamma(n + 1) - torch.lgamma(theirs - n + 1)  # logarithms: they are huge
    in_so_many = torch.exp(ways + torch.special.xlog1py(n, -p) + torch.xlogy(theirs - n + ours, p))
    return float(in_so_many.sum(1).max())


def _repeated_block(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if a block of draws occurs again, in the same call or in one with another seed.

    Threads or blocks that share a state repeat blocks, and so do seeds whose sequences overlap. ``length`` is a power
    of two at which CPU repeats no block. The device may repeat no block of eight times that length. Let two sequences
    of independent draws begin to match at A places, and let x be the chance that a match lasts for ``length`` draws.
    Then the chance that CPU repeats no block is exp(-A x), and the chance that the device repeats a block of eight
    times the length is A x ** 8. Their product is at most (8 / e) ** 8 / A ** 7, which is below ALPHA if A > 35.
    Positions with parameters of their own match the same positions in other calls. There are 35 such places if the
    number of draws is 32 times the length, since fewer would leave CPU with longer matches.
    """
    ours, theirs = actual.joined(), expected.joined()
    at = _compared(ours.numel())
    ours, theirs = ours[at], theirs[_compared(theirs.numel())]  # rows that share parameters match at the same places
    if min(ours.numel(), theirs.numel()) < FOR_BLOCKS:
        return None
    length, numbers = 1, _numbered(theirs)
    while _first_repeated(numbers):
        length, numbers = 2 * length, _joined(numbers, length)
        if 32 * length > theirs.numel():
            return None
    numbers = _numbered(ours)
    for half in (2**i for i in range((8 * length).bit_length() - 1)):
        numbers = _joined(numbers, half)
    found = _first_repeated(numbers)
    if not found:
        return None
    (call, first), (other, second) = (_place(actual, int(at[one])) for one in found)
    facts = {"first": first, "second": second, "calls_apart": other - call, "length": 8 * length}
    return differs(subject, Fact.REPEATED_BLOCK, **facts)


def _compared(count: int) -> torch.Tensor:
    """Return the positions, among ``count`` draws, that are searched for repeated blocks."""
    starts = [1 << i for i in range(IN_BLOCKS.bit_length() - 1, count.bit_length()) if 1 << i < count]
    behind = [(start, min(count, start + BEHIND)) for start in starts[:POWERS]]
    ranges = [(0, min(count, IN_BLOCKS - BEHIND * len(behind))), *behind]
    return torch.cat([torch.arange(*one) for one in ranges])


def _numbered(draws: torch.Tensor) -> torch.Tensor:
    """Return a number for each draw, the same for equal draws."""
    return draws.unique(return_inverse=True)[1]


def _joined(numbers: torch.Tensor, length: int) -> torch.Tensor:
    """Return a number for each block of twice the length. ``numbers``: those of the blocks of ``length``.

    The numbers are hashes of 64 bits. The chance that two different blocks of `IN_BLOCKS` have equal hashes is 1e-11.
    """
    mixed = (numbers ^ (numbers >> 29)) * _MIX
    return mixed[:-length] * _MIX + (mixed ^ (mixed >> 32))[length:]


def _first_repeated(numbers: torch.Tensor) -> tuple[int, int] | None:
    """Return the positions of the equal pair whose second position is the smallest; None if there is no equal pair."""
    ordered, order = numbers.sort(stable=True)
    (again,) = (ordered[1:] == ordered[:-1]).nonzero(as_tuple=True)
    if not again.numel():
        return None
    at = int(again[order[again + 1].argmin()])
    return int(order[at]), int(order[at + 1])


def _place(draws: Draws, position: int) -> tuple[int, int]:
    """Return the call and the flat index in this call of a position among the draws of all calls."""
    for call, values in enumerate(draws.calls):
        if position < len(values):
            return call, position
        position -= len(values)
    raise IndexError(position)
