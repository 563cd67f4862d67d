"""Which point to probe next, or what the search came to: a pure function of the answers so far.

Points are numbered from the oldest to the newest; good ones come before bad ones. Each *run* of a case at a point
answers good, bad or unknown. First both ends are verified, the bad one until its rate is known, the good one until a
bad point would hardly have passed as often; then each step asks for the run that tells most of the first bad point per
cost (:mod:`conformance.bisect.posterior`), so that a rare failure is repeated where it has to be and a certain one is
not. A point that answered unknown is not asked again; its neighbours are avoided, since what breaks one version often
breaks the next: a point at distance d from the nearest unknown one counts 1 - 2^-d of what it would tell.

Without a good end, points before the bad one are tried at distances 1, 2, 4, … until one passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import ceil

from conformance.bisect.posterior import Posterior, Rate, posterior

LEAST_BITS = 1e-3  # a run that tells less is not worth making
SLACK = 0.05  # of what a run tells, given up for a simpler choice
SURE_OF_RATE = 4  # failures at the bad end that suffice to know the rate by


class Answer(str, Enum):
    """What one run of a case at a point said."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"  # another failure, or none that can be judged


class Stage(str, Enum):
    """Why a point is asked."""

    VERIFY_BAD = "verify the bad end"
    VERIFY_GOOD = "verify the good end"
    FIND_GOOD = "look for a good end"
    NARROW = "narrow down"


class Kind(str, Enum):
    """What a search came to."""

    CULPRIT = "culprit"  # one point, as sure as was asked for
    RANGE = "range"  # several, as sure as was asked for
    NOT_BAD = "not bad"  # the bad end does not fail
    NOT_GOOD = "not good"  # the good end fails as well
    ALWAYS = "always"  # the oldest point fails as well
    NO_END = "no end"  # an end cannot be probed


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
    """Run the case once more at this point."""

    point: int
    stage: Stage
    bits: float = 0.0  # what that would tell
    runs_left: int = 0  # about, this one included


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a search: the first bad point is ``first`` … ``last`` with this probability."""

    kind: Kind
    first: int
    last: int
    confidence: float
    untested: tuple[int, ...] = ()  # points in the range that could not be tested


@dataclass(frozen=True)
class Search:
    """One case's search: immutable, made again from its answers."""

    points: int
    bad: int
    good: int | None = None  # None: to be found
    rate: Rate = field(default_factory=Rate)
    threshold: float = 0.95
    tries: int = 10  # runs at the bad end before it is believed not to fail
    most_runs: int = 500
    setup: float = 1.0  # what preparing a point costs, in runs
    skip: frozenset[int] = frozenset()  # points known not to be testable
    tallies: Mapping[int, Tally] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.5 < self.threshold < 1:
            raise ValueError(f"the threshold is between 0.5 and 1, not {self.threshold:g}")
        if not (-1 if self.good is None else self.good) < self.bad < self.points:
            raise ValueError(f"the good end {self.good} is not before the bad end {self.bad} of {self.points} points")

    def answer(self, point: int, answer: Answer) -> Search:
        """The search after one more run."""
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
        """What to do now."""
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
        known = self.rate.spike > 0.99  # then one failure is enough
        ends = max(1, (1 if known else SURE_OF_RATE) - tally.failed) + 1
        return Ask(self.bad, Stage.VERIFY_BAD, runs_left=ends + self._halvings(self.good or 0))

    def good_end(self) -> int | Ask | Result:
        """The verified good end; or the run, or the result, that stands in its place."""
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
        """The point to try as the good end: twice as far from the bad one each time, then one by one."""
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
        """Whether a bad point would pass as often as this one did with a probability of (1 - threshold) / 2 at most."""
        failed, passed = self._at_bad_points()
        more = self.tally(point).passed
        return more > 0 and self.rate.all_pass(failed, passed, more) <= (1 - self.threshold) / 2

    def _at_bad_points(self) -> tuple[int, int]:
        """(failures, passes) at the points from the oldest failing one on: what the rate is known by."""
        oldest = min((p for p, t in self.tallies.items() if t.failed), default=self.bad)
        later = [t for p, t in self.tallies.items() if p >= oldest]
        return sum(t.failed for t in later), sum(t.passed for t in later)

    # Narrowing down ---------------------------------------------------------------------------------------------

    def posterior(self, good: int) -> Posterior:
        """Over the first bad point, the good end included: it may have passed by luck."""
        if good not in self._posteriors:
            failed = [self.tally(p).failed for p in range(self.points)]
            passed = [self.tally(p).passed for p in range(self.points)]
            self._posteriors[good] = posterior(failed, passed, good, self.bad, self.rate)
        return self._posteriors[good]

    @cached_property
    def _posteriors(self) -> dict[int, Posterior]:
        return {}

    def worth(self, good: int) -> dict[int, float]:
        """Point -> what one run there would tell, in bits, as far as it can be expected to be testable."""
        if self.runs >= self.most_runs or self.posterior(good).best[1] >= self.threshold:
            return {}
        untestable = self.untestable()
        bits = enumerate(self.posterior(good).information(), start=good)
        return {
            p: b * self._testable(p, untestable) for p, b in bits if b >= LEAST_BITS and p not in untestable
        }  # fmt: skip

    @property
    def middle(self) -> float:
        """Halfway between the oldest point that failed and the newest before it that passed."""
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
        """How many tell the points after a good one apart, where a run tells all: one for each doubling."""
        return (self.bad - good - 1).bit_length()

    def _runs_left(self, good: int, bits: float) -> int:
        """About how many: what is not known, less what the untestable points will keep unknown, over one run's bits."""
        found = self.posterior(good)
        lost = set(self.untestable())
        groups: dict[int, float] = {}
        for j, w in enumerate(found.weights):  # hypotheses that no testable point tells apart are one
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
    """The point whose runs tell most per cost: ``worth`` is, of each case that gains by it, the bits of one run.

    Of points that are as good but for ``SLACK`` it is the one nearest to the middles of what the cases have left, so
    that a certain failure is found by halving, in no more points than that takes.
    """
    ready = set(prepared)

    def rate(point: int) -> float:
        return sum(worth[point]) / (len(worth[point]) + (0.0 if point in ready else setup))

    most = max(map(rate, worth))
    good_enough = sorted(p for p in worth if rate(p) >= (1 - SLACK) * most)
    return min(good_enough, key=lambda p: sum(abs(p - m) for m in middles))
