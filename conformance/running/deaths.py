"""Whether a death is steady, flaky, or follows from what ran before it: asked of fresh processes, within a budget.

The case runs alone in fresh processes. Where it never dies so, all that the dead process had run is run again in the
same order, and the shortest end of it that still kills is looked for: its first case is the one to blame.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conformance.records import DeathFinding, LeftOut
from conformance.running.protocol import Stretch

# Fresh processes that a case runs in alone, and in which the case to blame is confirmed.
TRIES = 5
# Times that the same order is tried again before it is said to do no harm.
ORDERS = 2
# Deaths of one signature (overload, signal, side) that are asked about; more of them tell nothing new.
ASKED = 2
# Seconds that a run, or a worker of it, spends on such questions.
SECONDS = 60.0

Dies = Callable[[Sequence[Stretch]], bool]  # whether a fresh process that runs these dies in the last of them
Pieces = Callable[[Stretch], Sequence[Stretch]]  # a stretch, case by case


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of the questions. The pairs count (deaths, tries)."""

    alone: tuple[int, int] = (0, 0)
    again: tuple[int, int] = (0, 0)  # after everything that the dead process had run, in the same order
    before: int = 0  # how many cells that were
    after: Stretch | None = None  # what it dies after
    confirmed: tuple[int, int] = (0, 0)  # after that alone
    left_out: LeftOut = LeftOut.NOTHING  # why not more was asked
    like: str = ""  # the kind of the deaths like it that were asked about instead

    @property
    def kind(self) -> str:
        """``steady``, ``flaky``, ``ordered`` (it dies only after something else), or "" where too little was asked."""
        died, tries = self.alone
        if died:
            return "steady" if died == tries else "flaky"
        if self.after or (self.again[0] and self.again[0] == self.again[1]):
            return "ordered"
        return "flaky" if self.left_out is LeftOut.NOTHING else ""

    def record(self, after: str) -> DeathFinding:
        """What is kept of it. ``after`` is the id of what the case dies after."""
        return DeathFinding(
            self.kind, self.alone, self.again, self.before, after, self.confirmed, self.left_out, self.like
        )


@dataclass(slots=True)
class DeathInquiry:
    """Asks about the deaths of one process' run. ``seconds`` is all the time that it may take."""

    dies: Dies
    pieces: Pieces
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    _asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _known: dict[tuple[str, ...], str] = field(default_factory=dict)

    def of(self, signature: tuple[str, ...], case: Stretch, before: Sequence[tuple[Stretch, float]]) -> Finding:
        """``before``: what the dead process had run, oldest first, each with the seconds it took."""
        if self.seconds <= 0:
            return Finding(left_out=LeftOut.TIME)
        self._asked[signature] += 1
        if self._asked[signature] > ASKED:
            return Finding(left_out=LeftOut.REPEATED, like=self._known.get(signature, ""))
        ends = self.clock() + self.seconds
        try:
            found = self._of(case, before, ends)
        finally:
            self.seconds = ends - self.clock()
        self._known[signature] = found.kind
        return found

    def _of(self, case: Stretch, before: Sequence[tuple[Stretch, float]], ends: float) -> Finding:
        alone = self._tries([case], TRIES, ends)
        if alone[0] or not before:
            return Finding(alone)
        order = _affordable(before, (ends - self.clock()) / (2 * ORDERS))
        if not order:
            return Finding(alone, left_out=LeftOut.ORDER)
        again = self._tries([*order, case], ORDERS, ends)
        cells = len({s.cell for s in order})
        if again[0] < max(again[1], 1):
            return Finding(alone, again, cells)
        culprit = self._culprit(order, case, ends)
        if culprit is None:
            return Finding(alone, again, cells)
        confirmed = self._tries([culprit, case], TRIES, ends)
        if confirmed[0] < confirmed[1] or not confirmed[1]:
            return Finding(alone, again, cells)
        return Finding(alone, again, cells, culprit, confirmed)

    def _tries(self, order: Sequence[Stretch], tries: int, ends: float) -> tuple[int, int]:
        """(deaths, tries), fewer tries where the time is over."""
        died = tried = 0
        while tried < tries and (not tried or self.clock() < ends):
            died += self.dies(order)
            tried += 1
        return died, tried

    def _culprit(self, order: Sequence[Stretch], case: Stretch, ends: float) -> Stretch | None:
        """The one stretch, of one case where possible, after which alone the case dies; None where it takes several."""
        cell = order[-self._shortest(order, case, ends)]
        if not self.dies([cell, case]):
            return None
        cases = self.pieces(cell)
        if len(cases) < 2 or self.clock() >= ends:
            return cell
        one = cases[-self._shortest(cases, case, ends)]
        return one if self.dies([one, case]) else cell

    def _shortest(self, order: Sequence[Stretch], case: Stretch, ends: float) -> int:
        """The length of the shortest end of ``order`` after which the case dies, which it does after all of it."""
        longest, shortest = 1, 0  # dies after the last `longest`, once the first loop is over; lives after `shortest`
        while longest < len(order) and not self.dies([*order[-longest:], case]):
            shortest, longest = longest, 2 * longest
        longest = min(longest, len(order))
        while longest - shortest > 1 and self.clock() < ends:
            middle = (shortest + longest) // 2
            if self.dies([*order[-middle:], case]):
                longest = middle
            else:
                shortest = middle
        return longest


def _affordable(before: Sequence[tuple[Stretch, float]], seconds: float) -> list[Stretch]:
    """The longest end of what ran that can be run again in so many seconds."""
    found: list[Stretch] = []
    for stretch, took in reversed(before):
        seconds -= took
        if seconds < 0:
            break
        found.append(stretch)
    return found[::-1]
