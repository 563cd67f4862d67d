"""Whether a death is steady, flaky, or follows from what ran before it: asked of fresh processes, within a budget.

The case runs alone in fresh processes. Where it never dies so, all that the dead process had run is run again in the
same order, and the shortest end of it that still kills is looked for: its first case is the one to blame.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

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
    left_out: str = ""  # why not more was asked

    @property
    def kind(self) -> str:
        """``steady``, ``flaky``, ``ordered`` (it dies only after something else), or "" where too little was asked."""
        died, tries = self.alone
        if died:
            return "steady" if died == tries else "flaky"
        if self.after or (self.again[0] and self.again[0] == self.again[1]):
            return "ordered"
        return "" if self.left_out else "flaky"

    def text(self, after: str) -> str:
        """One line. ``after`` names what it dies after, as a person knows it."""
        alone = f"{self.alone[0]}/{self.alone[1]}"
        if self.kind == "steady":
            said = f"steady {alone}: alone in a fresh process, it dies each time"
        elif self.kind == "ordered" and after:
            said = f"crashes only after {after}: {_of(self.confirmed)} fresh processes died so, and {alone} without it"
        elif self.kind == "ordered":
            said = f"crashes only after what ran before it ({self.before} cells): {_of(self.again)}, and {alone} alone"
        elif self.kind == "flaky":
            more = f", and {_of(self.again)} after the {self.before} cells that ran before it" if self.again[1] else ""
            said = f"flaky {alone}: alone, {_of(self.alone)} fresh processes died{more}"
        else:
            said = f"alone, {_of(self.alone)} fresh processes died" if self.alone[1] else ""
        return "; ".join(filter(None, (said, self.left_out)))

    def figures(self, after: str) -> dict[str, Any]:
        """As recorded with the failure; see docs/reference.md."""
        found: dict[str, Any] = {"death": self.kind, "alone": list(self.alone)}
        if self.again[1]:
            found |= {"again": list(self.again), "before": self.before}
        if after:
            found |= {"after": after, "confirmed": list(self.confirmed)}
        return found


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"


@dataclass(slots=True)
class Inquest:
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
            return Finding(left_out=_SPENT)
        self._asked[signature] += 1
        if self._asked[signature] > ASKED:
            known = f" ({self._known[signature]})" if self._known.get(signature) else ""
            return Finding(left_out=f"not tried again: {ASKED} deaths like it were{known}")
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
            return Finding(alone, left_out=f"what ran before it was not run again: {_SPENT}")
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


_SPENT = "the time for questions about deaths is over"


def _affordable(before: Sequence[tuple[Stretch, float]], seconds: float) -> list[Stretch]:
    """The longest end of what ran that can be run again in so many seconds."""
    found: list[Stretch] = []
    for stretch, took in reversed(before):
        seconds -= took
        if seconds < 0:
            break
        found.append(stretch)
    return found[::-1]
