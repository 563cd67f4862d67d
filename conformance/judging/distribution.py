"""Whether two sets of random draws come from one distribution. Pure."""

from __future__ import annotations

import math

import torch

from conformance.judging.bits import real
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

# Draws of each side to judge by, and how often at most an op is called for them.
WANTED = 800
CALLS = 40
#: The same of a generated sample, of which an overload has dozens: enough to see that a half is never drawn.
FEW_CALLS = 10
# The chance that two honest samplers are called different. A full run asks some hundred times, with fixed seeds.
ALPHA = 1e-7


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Every draw as a float64."""
    return real(tensor).reshape(-1).to(torch.float64)


def compare(expected: list[torch.Tensor], actual: list[torch.Tensor], subject: str) -> Mismatch | None:
    """The draws of each side, one tensor a seed: same support, same distribution, and dependent on the seed alike.

    Two-sample Kolmogorov-Smirnov, with the asymptotic threshold; ties make it conservative.
    """
    if len(expected) > 1 and _constant(actual) and not _constant(expected):
        return _differs(subject, Fact.SAME_DRAWS, seeds=len(actual))
    ours, theirs = _different(actual), _different(expected)
    if bool(ours.isnan().any()) and not bool(theirs.isnan().any()):
        return _differs(subject, Fact.NAN_DRAWS)
    if not ours.numel() or not theirs.numel():
        return None
    distance = statistic(ours, theirs)
    limit = allowed(ours.numel(), theirs.numel())
    if distance > limit:
        return _differs(subject, Fact.DRAWS, distance=distance, allowed=limit, draws=ours.numel())
    if _constant(actual) or _constant(expected):
        return None
    return _repeating(expected, actual, subject) or _at_positions(expected, actual, subject)


def allowed(ours: int, theirs: int, tests: int = 1) -> float:
    """Return the distance of so many draws that honest samplers exceed by chance in ALPHA of all cases."""
    return math.sqrt(-math.log(ALPHA / 2 / tests) / 2) * math.sqrt(1 / ours + 1 / theirs)


def _repeating(expected: list[torch.Tensor], actual: list[torch.Tensor], subject: str) -> Mismatch | None:
    """Return a mismatch if integers repeat in a row, where CPU draws without replacement.

    That CPU's rows have no repeated number is no chance if draws with replacement would seldom be like that: of n
    numbers out of m, the chance is at most exp(-n (n - 1) / 2m) in each row.
    """
    if not all(_is_whole(t) and t.dim() and t.shape[-1] > 1 for t in (*expected, *actual)):
        return None
    theirs, ours = ([row for t in draws for row in t.long().view(-1, t.shape[-1])] for draws in (expected, actual))
    span = max(int(row.max()) for row in theirs) - min(int(row.min()) for row in theirs) + 1
    chance = -sum(len(row) * (len(row) - 1) for row in theirs) / 2 / span
    if chance > math.log(ALPHA) or any(map(_repeats, theirs)):
        return None
    rows = sum(map(_repeats, ours))
    return _differs(subject, Fact.REPEATED_DRAWS, rows=rows, of=len(ours)) if rows else None


def _is_whole(tensor: torch.Tensor) -> bool:
    exact = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
    return exact and bool(tensor.numel())


def _repeats(row: torch.Tensor) -> bool:
    return bool(row.unique().numel() < row.numel())


def _at_positions(expected: list[torch.Tensor], actual: list[torch.Tensor], subject: str) -> Mismatch | None:
    """Return a mismatch if the draws of one position have another distribution, though those of all have not.

    Each position may have parameters of its own, or be left out of a permutation.
    """
    count = expected[0].numel()
    if len({t.shape for t in (*expected, *actual)}) > 1:
        return None
    limit = allowed(len(actual), len(expected), count)
    if limit >= 1:  # too few calls
        return None
    ours, theirs = (torch.stack([flat(t) for t in draws], dim=1) for draws in (actual, expected))
    distances = statistics(ours, theirs)
    at = int(distances.argmax())
    if float(distances[at]) <= limit:
        return None
    facts = {"distance": float(distances[at]), "allowed": limit, "draws": len(actual), "position": at}
    return _differs(subject, Fact.DRAWS_AT, **facts)


def _differs(subject: str, kind: Fact, **facts: float) -> Mismatch:
    return Mismatch(Check.DISTRIBUTION, subject, {"kind": kind.value, **facts})


def _different(draws: list[torch.Tensor]) -> torch.Tensor:
    """All draws; those of one call if the others repeat them, as with a generator among the arguments."""
    return torch.cat([flat(t) for t in (draws[:1] if _constant(draws) else draws)])


def _constant(draws: list[torch.Tensor]) -> bool:
    return all(torch.equal(flat(draws[0]), flat(t)) for t in draws[1:])


def statistic(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference between the two empirical distribution functions."""
    return float(statistics(a, b))


def statistics(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same of each row of two matrices."""
    a, b = a.sort().values, b.sort().values
    at = torch.cat([a, b], dim=-1)
    below_a = torch.searchsorted(a, at, right=True) / a.shape[-1]
    below_b = torch.searchsorted(b, at, right=True) / b.shape[-1]
    return (below_a - below_b).abs().amax(-1)
