"""The next point to test, or the result: a pure function of the answers so far.

Points are numbered from the oldest to the newest; good points come before bad points. Each *run* of a case at a point
gives the answer good, bad or unknown. First both ends are verified: the bad end until its failure rate is known, the
good end until a bad point would pass as often only with a small probability. Then each step is the run with the most
information about the first bad point per cost (:mod:`conformance.bisect.posterior`). So only rare failures are
repeated. A point with the answer unknown is not tested again. Its neighbours are avoided, because a defect that
prevents the test of one version often exists in the next: the information of a point at distance d from the nearest
unknown point is multiplied by 1 - 2^-d.

Without a good end, points at distances 1, 2, 4, … before the bad end are tested until one passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import ceil

from conformance.bisect.posterior import Posterior, Rate, posterior

LEAST_BITS = 1e-3  # runs with less information are not made
SLACK = 0.05  # part of a run's information that may be lost for a point nearer to the middle
SURE_OF_RATE = 4  # failures at the bad end that suffice to estimate the rate


class Answer(str, Enum):
    """The answer of one run of a case at a point."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"  # another failure, or it could not be tested


class Stage(str, Enum):
    """The purpose of a run."""

    VERIFY_BAD = "verify the bad end"
    VERIFY_GOOD = "verify the good end"
    FIND_GOOD = "look for a good end"
    NARROW = "narrow down"


class Kind(str, Enum):
    """The kind of a result."""

    CULPRIT = "culprit"  # one point, with the required confidence
    RANGE = "range"  # several points, with the required confidence
    NOT_BAD = "not bad"  # the bad end does not fail
    NOT_GOOD = "not good"  # the good end fails as well
    ALWAYS = "always"  # the oldest point fails as well
    NO_END = "no end"  # an end cannot be tested


@dataclass(frozen=True, slots=True)
class Tally:
    """The runs of one case at one point."""

    failed: int = 0
    passed: int = 0
    unknown: int = 0

    def plus(self, answer: Answer) -> Tally:
        return Tally(
            self.failed + (answer is Answer.BAD),
            self.passed + (answer is Answer.GOOD),
            self.unknown + (answer is Answer.UNKNOWN),
        )


@dataclass(frozen=True, slots=True)
class Ask:
    """The request to run the case once more at this point."""

    point: int
    stage: Stage
    bits: float = 0.0  # expected information
    runs_left: int = 0  # estimate, including this run


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search: the first bad point is in ``first`` … ``last`` with this probability."""

    kind: Kind
    first: int
    last: int
    confidence: float
    untested: tuple[int, ...] = ()  # points in the range that could not be tested


@dataclass(frozen=True)
class Search:
    """The search of one case. It is immutable and computed from the answers."""

    points: int
    bad: int
    good: int | None = None  # None: it must be found
    rate: Rate = field(default_factory=Rate)
    threshold: float = 0.95
    tries: int = 10  # passing runs at the bad end after which it counts as not bad
    most_runs: int = 500
    setup: float = 1.0  # cost of preparing a point, in runs
    skip: frozenset[int] = frozenset()  # points that cannot be tested
    tallies: Mapping[int, Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.5 < self.threshold < 1:
            raise ValueError(f"expected a threshold between 0.5 and 1, got {self.threshold:g}")
        if not (-1 if self.good is None else self.good) < self.bad < self.points:
            raise ValueError(f"the good end {self.good} is not before the bad end {self.bad} of {self.points} points")

    def answer(self, point: int, answer: Answer) -> Search:
        """Return the search after one more run."""
        tallies = {**self.tallies, point: self.tally(point).plus(answer)}
        return replace(self, tallies=tallies)

    def tally(self, point: int) -> Tally:
        return self.tallies.get(point, Tally())

    @property
    def runs(self) -> int:
        return sum(t.failed + t.passed + t.unknown for t in self.tallies.values())

    def untestable(self) -> set[int]:
        return set(self.skip) | {p for p, t in self.tallies.items() if t.unknown}

    # The next step ----------------------------------------------------------------------------------------------

    def next(self) -> Ask | Result:
        """Return the next run, or the result."""
        step = self._verify_bad()
        if step is not None:
            return step
        good = self.good_end()
        if not isinstance(good, int):
            return good
        return self._narrow(good)

    def _verify_bad(self) -> Ask | Result | None:
        tally = self.tally(self.bad)
        if self.bad in self.untestable():
            return self._ended(Kind.NO_END, self.bad)
        certain = tally.failed >= SURE_OF_RATE or (self.rate.spike > 0.99 and tally.failed)
        if certain or (tally.failed and tally.failed + tally.passed >= self.tries):
            return None
        if tally.passed >= (1 if self.rate.spike > 0.99 else self.tries):
            return self._ended(Kind.NOT_BAD, self.bad)
        known = self.rate.spike > 0.99  # a certain failure: one run is enough
        ends = max(1, (1 if known else SURE_OF_RATE) - tally.failed) + 1
        return Ask(self.bad, Stage.VERIFY_BAD, runs_left=ends + self._halvings(self.good or 0))

    def good_end(self) -> int | Ask | Result:
        """Return the verified good end, or the run that is needed to verify it, or the result if there is none."""
        if self.good is not None:
            if self.good in self.untestable():
                return self._ended(Kind.NO_END, self.good)
            if self.tally(self.good).failed:
                return self._ended(Kind.NOT_GOOD, self.good)
            stage, found = Stage.VERIFY_GOOD, self.good
        else:
            older = self._older()
            if older is None:
                failing = min(p for p, t in self.tallies.items() if t.failed)
                return Result(Kind.ALWAYS, 0, failing, 1.0, self._untested(0, failing))
            stage, found = Stage.FIND_GOOD, older
        if self._passed_often_enough(found):
            return found
        return Ask(found, stage, runs_left=1 + self._halvings(found))

    def _older(self) -> int | None:
        """Return the next candidate for the good end: twice as far from the bad end each time, then one by one."""
        untestable = self.untestable()
        testable = [p for p in range(self.bad) if p not in untestable]
        passing = [p for p in testable if not self.tally(p).failed and self.tally(p).passed]
        if passing:
            return max(passing)
        failing = min((p for p, t in self.tallies.items() if t.failed), default=self.bad)
        left = [p for p in testable if p < failing]
        if not left:
            return None
        distance = 2 * (self.bad - failing) or 1
        return max((p for p in left if p <= self.bad - distance), default=left[0])

    def _passed_often_enough(self, point: int) -> bool:
        """Return whether a bad point would pass this often with a probability of at most (1 - threshold) / 2."""
        failed, passed = self._at_bad_points()
        more = self.tally(point).passed
        return more > 0 and self.rate.all_pass(failed, passed, more) <= (1 - self.threshold) / 2

    def _at_bad_points(self) -> tuple[int, int]:
        """Return failures and passes at the points from the oldest failing one on, to estimate the rate."""
        oldest = min((p for p, t in self.tallies.items() if t.failed), default=self.bad)
        later = [t for p, t in self.tallies.items() if p >= oldest]
        return sum(t.failed for t in later), sum(t.passed for t in later)

    # Narrowing down ---------------------------------------------------------------------------------------------

    def posterior(self, good: int) -> Posterior:
        """Return the posterior of the first bad point. The good end is included, since it may have passed by chance."""
        if good not in self._posteriors:
            failed = [self.tally(p).failed for p in range(self.points)]
            passed = [self.tally(p).passed for p in range(self.points)]
            self._posteriors[good] = posterior(failed, passed, good, self.bad, self.rate)
        return self._posteriors[good]

    @cached_property
    def _posteriors(self) -> dict[int, Posterior]:
        return {}

    def worth(self, good: int) -> dict[int, float]:
        """Return the information of one run at each point, in bits, times the probability that it can be tested."""
        if self.runs >= self.most_runs or self.posterior(good).best[1] >= self.threshold:
            return {}
        untestable = self.untestable()
        bits = enumerate(self.posterior(good).information(), start=good)
        return {
            p: b * self._testable(p, untestable) for p, b in bits if b >= LEAST_BITS and p not in untestable
        }  # fmt: skip

    @property
    def middle(self) -> float:
        """The middle between the oldest failing point and the newest passing point before it."""
        failing = min((p for p, t in self.tallies.items() if t.failed), default=self.bad)
        passing = max((p for p, t in self.tallies.items() if t.passed and p < failing), default=0)
        return (failing + passing) / 2

    def _testable(self, point: int, untestable: Iterable[int]) -> float:
        if point in self.tallies:
            return 1.0
        nearest = min((abs(point - u) for u in untestable), default=1000)
        return 1 - 2.0 ** -min(nearest, 50)

    def _narrow(self, good: int) -> Ask | Result:
        worth = self.worth(good)
        if not worth:
            return self._concluded(good)
        point = best({p: [b] for p, b in worth.items()}, self.tallies, self.setup, [self.middle])
        return Ask(point, Stage.NARROW, worth[point], self._runs_left(good, max(worth.values())))

    def _halvings(self, good: int) -> int:
        """Return the number of steps of a binary search of the points after the good end."""
        return (self.bad - good - 1).bit_length()

    def _runs_left(self, good: int, bits: float) -> int:
        """Estimate the number of runs left: the entropy that testable points can resolve over the bits of a run."""
        found = self.posterior(good)
        lost = set(self.untestable())
        groups: dict[int, float] = {}
        for j, w in enumerate(found.weights):  # join hypotheses that no testable point distinguishes
            p = found.first + j
            while p in lost:
                p += 1
            groups[p] = groups.get(p, 0.0) + w
        merged = Posterior(0, tuple(groups.values()), ())
        return max(1, ceil(merged.entropy / bits - 0.1))

    def _concluded(self, good: int) -> Result:
        found = self.posterior(good)
        first, confidence = found.best
        if confidence >= self.threshold:
            if first == good:
                return self._ended(Kind.NOT_GOOD, good)
            return Result(Kind.CULPRIT, first, first, confidence)
        first, last, held = found.interval(self.threshold)
        return Result(Kind.RANGE, first, last, held, self._untested(first, last))

    def _untested(self, first: int, last: int) -> tuple[int, ...]:
        return tuple(sorted(p for p in self.untestable() if first <= p <= last))

    def _ended(self, kind: Kind, point: int) -> Result:
        return Result(kind, point, point, 1.0)


def best(worth: Mapping[int, Sequence[float]], prepared: Iterable[int], setup: float, middles: Sequence[float]) -> int:
    """Return the point with the most information per cost. ``worth``: the bits of one run for each case, by point.

    Among points within ``SLACK`` of the best, it is the one nearest to the middles of the cases' ranges. So the search
    for a certain failure is a binary search.
    """
    ready = set(prepared)

    def rate(point: int) -> float:
        return sum(worth[point]) / (len(worth[point]) + (0.0 if point in ready else setup))

    most = max(map(rate, worth))
    good_enough = sorted(p for p in worth if rate(p) >= (1 - SLACK) * most)
    return min(good_enough, key=lambda p: sum(abs(p - m) for m in middles))
