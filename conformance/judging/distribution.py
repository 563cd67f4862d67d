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
    limit = math.sqrt(-math.log(ALPHA / 2) / 2) * math.sqrt(1 / ours.numel() + 1 / theirs.numel())
    if distance <= limit:
        return None
    return _differs(subject, Fact.DRAWS, distance=distance, allowed=limit, draws=ours.numel())


def _differs(subject: str, kind: Fact, **facts: float) -> Mismatch:
    return Mismatch(Check.DISTRIBUTION, subject, {"kind": kind.value, **facts})


def _different(draws: list[torch.Tensor]) -> torch.Tensor:
    """All draws; those of one call if the others repeat them, as with a generator among the arguments."""
    return torch.cat([flat(t) for t in (draws[:1] if _constant(draws) else draws)])


def _constant(draws: list[torch.Tensor]) -> bool:
    return all(torch.equal(flat(draws[0]), flat(t)) for t in draws[1:])


def statistic(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference between the two empirical distribution functions."""
    a, b = a.sort().values, b.sort().values
    at = torch.cat([a, b])
    below_a = torch.searchsorted(a, at, right=True) / a.numel()
    below_b = torch.searchsorted(b, at, right=True) / b.numel()
    return float((below_a - below_b).abs().max())
