"""The posterior probability of each point to be the first bad one, given the runs at each point.

A bad point fails in a run with the failure's rate p, which is unknown, and the same at every bad point. A good point
fails only by chance (``CHANCE``). Before any run, p is 1 with probability ``spike``, else Beta(a, b) distributed.
F failures and S passes at bad points then have the evidence, p integrated out (the Beta-binomial marginal),

    e(F, S) = spike·[S = 0] + (1 - spike) · B(a + F, b + S) / B(a, b)

and the posterior of "c is the first bad point", equal for all c before any run, is proportional to

    e(F≥c, S≥c) · CHANCE^F<c · (1 - CHANCE)^S<c

where F≥c counts the failures at points from c on. The information of a run at point i is the mutual information of its
answer and c, in bits. The answer is "fails" with probability e(F≥c + 1, S≥c) / e(F≥c, S≥c) if c ≤ i, else ``CHANCE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import exp, lgamma, log, log2

CHANCE = 1e-3  # probability that a good point shows the same failure
_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Rate:
    """The prior of the failure's rate: 1 with probability ``spike``, else Beta(a, b)."""

    spike: float = 0.5
    a: float = 1.0
    b: float = 1.0

    @staticmethod
    def known(rate: float | None) -> Rate:
        """Return the prior for a rate in (0, 1] that the user knows, with a weight of ten runs. Raises ValueError."""
        if rate is None:
            return Rate()
        if not 0 < rate <= 1:
            raise ValueError(f"expected a rate of more than 0 and at most 1, got {rate:g}")
        return Rate(spike=1 - 1e-6) if rate == 1 else Rate(0.0, 10 * rate, 10 * (1 - rate))

    @cache  # noqa: B019 - of a few numbers, for a few rates
    def log_evidence(self, failed: int, passed: int) -> float:
        """Return the logarithm of e(F, S)."""
        flaky = exp(_log_beta(self.a + failed, self.b + passed) - _log_beta(self.a, self.b))
        return log(max((self.spike if not passed else 0.0) + (1 - self.spike) * flaky, _LEAST))

    def fails_next(self, failed: int, passed: int) -> float:
        """Return the probability that the next run at a bad point fails, after F failures and S passes there."""
        return min(1.0, exp(self.log_evidence(failed + 1, passed) - self.log_evidence(failed, passed)))

    def all_pass(self, failed: int, passed: int, more: int) -> float:
        """Return the probability that ``more`` runs at a bad point all pass."""
        return exp(self.log_evidence(failed, passed + more) - self.log_evidence(failed, passed))


@dataclass(frozen=True, slots=True)
class Posterior:
    """The distribution of the first bad point: it is point ``first + j`` with probability ``weights[j]``."""

    first: int
    weights: tuple[float, ...]
    fails: tuple[float, ...]  # the probability that a bad point's next run fails, under each hypothesis

    @property
    def best(self) -> tuple[int, float]:
        """Return the most probable first bad point and its probability."""
        j = max(range(len(self.weights)), key=self.weights.__getitem__)
        return self.first + j, self.weights[j]

    @property
    def entropy(self) -> float:
        """The entropy in bits."""
        return sum(-w * log2(w) for w in self.weights if w > 0)

    def interval(self, mass: float) -> tuple[int, int, float]:
        """Return first, last and probability of the shortest range with at least this probability."""
        sums = [0.0, *accumulate(self.weights)]
        found = (0, len(self.weights), sums[-1])
        start = 0
        for end in range(1, len(sums)):
            while start + 1 < end and sums[end] - sums[start + 1] >= mass:
                start += 1
            held = sums[end] - sums[start]
            if held >= mass and (end - start, -held) < (found[1] - found[0], -found[2]):
                found = (start, end, held)
        return self.first + found[0], self.first + found[1] - 1, min(found[2], 1.0)

    def information(self) -> list[float]:
        """Return the expected information of one run at each point ``first + j``, in bits."""
        fails = accumulate(w * f for w, f in zip(self.weights, self.fails))
        unsure = accumulate(w * _entropy(f) for w, f in zip(self.weights, self.fails))
        bad = accumulate(self.weights)
        return [
            max(0.0, _entropy(f + (1 - b) * CHANCE) - u - (1 - b) * _entropy(CHANCE))
            for f, u, b in zip(fails, unsure, bad)
        ]


def posterior(failed: Sequence[int], passed: Sequence[int], first: int, last: int, rate: Rate) -> Posterior:
    """Return the posterior over ``first`` to ``last``. ``failed[i]`` and ``passed[i]`` count the runs at point i."""
    all_failed, all_passed = sum(failed), sum(passed)
    before_failed, before_passed = sum(failed[:first]), sum(passed[:first])
    logs, fails = [], []
    for c in range(first, last + 1):
        f, s = all_failed - before_failed, all_passed - before_passed
        logs.append(rate.log_evidence(f, s) + before_failed * log(CHANCE) + before_passed * log(1 - CHANCE))
        fails.append(rate.fails_next(f, s))
        before_failed, before_passed = before_failed + failed[c], before_passed + passed[c]
    top = max(logs)
    weights = [exp(x - top) for x in logs]
    total = sum(weights)
    return Posterior(first, tuple(w / total for w in weights), tuple(fails))


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * log2(p) - (1 - p) * log2(1 - p)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
