"""Comparison of the distributions of two sets of random draws. Pure."""

from __future__ import annotations

import math

import torch

from conformance.judging.draws import Draws, have_one_shape
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

# The wanted number of draws of each side, and the largest number of calls to get them.
WANTED = 800
CALLS = 40
#: The largest number of calls for a generated sample. An overload has dozens of these samples. The calls are enough
#: to see that a position is never drawn.
FEW_CALLS = 24
#: Results with at most this many draws get FEW_CALLS calls, even if fewer calls would give enough draws.
EACH_POSITION = 1100
#: The most draws of each side that are compared.
MOST = 32_768
#: Relative distance of two roundings of one draw, in units of the dtype's epsilon: a factor and the result are rounded.
ROUNDING = 2.0
# The chance that two correct samplers count as different. A full run makes some hundred tests, with fixed seeds.
ALPHA = 1e-7


def calls_for(draws: int, most: int) -> int:
    """Return how often to call an op whose result has ``draws`` draws, at most ``most`` times."""
    return min(most, max(1 + WANTED // draws, FEW_CALLS if draws <= EACH_POSITION else 1))


def compare(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if the draws of both sides differ in their distribution, or in whether they depend on the seed.

    The test is two-sample Kolmogorov-Smirnov with the asymptotic threshold. Ties make it conservative.
    """
    if actual.are_constant and not expected.are_constant and not may_be_same(expected, actual):
        return differs(subject, Fact.SAME_DRAWS, seeds=len(actual))
    ours, theirs = actual.once().joined(), expected.once().joined()
    if bool(ours.isnan().any()) and not bool(theirs.isnan().any()):
        return differs(subject, Fact.NAN_DRAWS)
    if not ours.numel() or not theirs.numel():
        return None
    if len(ours) == len(theirs):
        ours, theirs = _most(ours), _most(theirs)
    distance = float(distances(ours, theirs, expected.dtype))
    limit = allowed(ours.numel(), theirs.numel())
    if distance > limit:
        return differs(subject, Fact.DRAWS, distance=distance, allowed=limit, draws=ours.numel())
    if actual.are_constant or expected.are_constant:
        return None
    return _at_positions(expected, actual, subject)


def allowed(ours: int, theirs: int, tests: int = 1) -> float:
    """Return the distance that correct samplers exceed with chance ALPHA in any of ``tests`` tests.

    ``ours`` and ``theirs`` are the numbers of draws.
    """
    return math.sqrt(-math.log(ALPHA / 2 / tests) / 2) * math.sqrt(1 / ours + 1 / theirs)


def _at_positions(expected: Draws, actual: Draws, subject: str) -> Mismatch | None:
    """Return a mismatch if the draws of one position have another distribution, although all draws together do not.

    Each position may have parameters of its own, or be left out of a permutation.
    """
    if not have_one_shape(expected, actual):
        return None
    limit = allowed(len(actual), len(expected), expected.calls[0].numel())
    if limit >= 1:  # too few calls
        return None
    found = distances(actual.matrix.t().contiguous(), expected.matrix.t().contiguous(), expected.dtype)
    at = int(found.argmax())
    if float(found[at]) <= limit:
        return None
    facts = {"distance": float(found[at]), "allowed": limit, "draws": len(actual), "position": at}
    return differs(subject, Fact.DRAWS_AT, **facts)


def distances(ours: torch.Tensor, theirs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return, for each row of two matrices, the largest difference between the two empirical distribution functions."""
    theirs = theirs.sort().values
    ours = _snapped(ours, theirs, dtype).sort().values
    at = torch.cat([ours, theirs], dim=-1)
    below, of_theirs = (torch.searchsorted(side, at, right=True) / side.shape[-1] for side in (ours, theirs))
    return (below - of_theirs).abs().amax(-1)


def _snapped(ours: torch.Tensor, ordered: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return our draws, with CPU's nearest draw in place of each that differs from it by rounding alone.

    ``ordered``: CPU's draws, sorted. A draw may be computed from an argument, as in dropout. Two devices round it
    differently, and then all draws of one value would differ.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return ours
    above = torch.searchsorted(ordered, ours).clamp_max(ordered.shape[-1] - 1)
    ends = ordered.gather(-1, above), ordered.gather(-1, (above - 1).clamp_min(0))
    nearest = torch.where((ends[0] - ours).abs() <= (ends[1] - ours).abs(), *ends)
    near = (nearest - ours).abs() <= ROUNDING * torch.finfo(dtype).eps * ours.abs()
    return torch.where(near & ours.isfinite(), nearest, ours)


def differ(ours: torch.Tensor, theirs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return elementwise whether two draws of this dtype differ by more than rounding."""
    eps = torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0
    return ~((ours == theirs) | ((ours - theirs).abs() <= ROUNDING * eps * theirs.abs()))


def differs(subject: str, kind: Fact, **facts: float) -> Mismatch:
    """Return a mismatch of draws."""
    return Mismatch(Check.DISTRIBUTION, subject, {"kind": kind.value, **facts})


def _most(draws: torch.Tensor) -> torch.Tensor:
    """Return at most MOST of the draws, chosen by their number alone: a part of them, and all of the last.

    The last draws are all kept because a kernel may end too early.
    """
    if len(draws) <= MOST:
        return draws
    first, last = draws[: -MOST // 8], draws[-MOST // 8 :]
    return torch.cat((first[:: math.ceil(len(first) / (MOST - len(last)))], last))


def may_be_same(expected: Draws, actual: Draws) -> bool:
    """Return whether the device may have drawn the same in all calls by chance, because CPU mostly drew the same, too.

    The chance is that all calls with other draws are CPU's, if they fall on the calls of both sides at random.
    """
    if not actual.are_constant:
        return False
    others = sum(not torch.equal(draws, actual.calls[0]) for draws in expected.calls)
    both = len(expected) + len(actual)
    return math.comb(len(expected), others) / math.comb(both, others) >= ALPHA
