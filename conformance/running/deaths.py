"""The repetition of crashes in fresh processes: finds whether a crash is steady, flaky, or caused by an earlier case.

The case runs alone in fresh processes. If it never crashes there, the stretches that the dead process had run are
repeated before it in the same order, as many of the last ones as the time budget allows. Then a search finds the
shortest tail of this order that still leads to the crash. The first case of this tail is the cause.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from conformance.records import DeathFinding, LeftOut
from conformance.running.protocol import Stretch

# Number of fresh processes in which a case runs alone, and in which the cause is confirmed.
TRIES = 5
# Number of fresh processes in which the same order is repeated.
ORDERS = 2
# Number of crashes of one signature (overload, signal, side) that are repeated.
ASKED = 2
# Time budget in seconds of a run, or of each of its workers.
SECONDS = 60.0

Dies = Callable[[Sequence[Stretch]], bool]  # whether a fresh process that runs these stretches dies in the last one
T = TypeVar("T")
Pieces = Callable[[Stretch], Sequence[Stretch]]  # splits a stretch into its cases


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of repeating a crash. The pairs are (crashes, tries). See :class:`DeathFinding` for the fields."""

    alone: tuple[int, int] = (0, 0)
    again: tuple[int, int] = (0, 0)  # after the last cells that the dead process had run, in the same order
    before: int = 0  # number of these cells
    after: Stretch | None = None  # the cause
    confirmed: tuple[int, int] = (0, 0)  # after the cause alone
    left_out: LeftOut = LeftOut.NOTHING
    like: str = ""  # the kind of the earlier crashes with the same signature

    @property
    def kind(self) -> str:
        """``steady``, ``flaky``, ``ordered`` (only after another case), or "" if too few processes were tried."""
        died, tries = self.alone
        if died:
            return "steady" if died == tries else "flaky"
        if self.after or (self.again[0] and self.again[0] == self.again[1]):
            return "ordered"
        return "flaky" if self.left_out is LeftOut.NOTHING else ""

    def record(self, after: str) -> DeathFinding:
        """Return the record of the finding. ``after`` is the id of the cause."""
        return DeathFinding(
            self.kind, self.alone, self.again, self.before, after, self.confirmed, self.left_out, self.like
        )


@dataclass(slots=True)
class DeathInquiry:
    """The repetition of a run's crashes in fresh processes. ``seconds`` is the time budget for all of them.

    The stacks of crashes that are not repeated have a second budget of the same size, see :meth:`stack`.
    """

    dies: Dies
    pieces: Pieces
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    _asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _known: dict[tuple[str, ...], str] = field(default_factory=dict)
    _stacks_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._stacks_s = self.seconds

    def stack(self, found: Finding, case: Stretch, read: Callable[[Sequence[Stretch]], T], nothing: T) -> T:
        """Return the stack that ``read`` finds by repeating a crash in one more process, or ``nothing``.

        ``read`` gets the stretches that lead to the crash. It is not called for a crash that never happened again. For
        a crash that was not repeated, because earlier crashes had its signature or for lack of time, ``read`` is called
        as long as there is time for stacks.
        """
        if found.left_out in (LeftOut.REPEATED, LeftOut.TIME):
            if self._stacks_s <= 0:
                return nothing
            started = self.clock()
            stack = read([case])
            self._stacks_s -= self.clock() - started
            return stack
        if not (found.alone[0] or found.after):
            return nothing
        return read([case] if found.alone[0] or not found.after else [found.after, case])

    def of(self, signature: tuple[str, ...], case: Stretch, before: Sequence[tuple[Stretch, float]]) -> Finding:
        """Repeat one crash. ``before``: the stretches that the dead process had run and their seconds, oldest first."""
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
        confirmed = self._tries([culprit, case], TRIES, ends) if culprit else (0, 0)
        if culprit and confirmed[0] == confirmed[1]:
            return Finding(alone, again, cells, culprit, confirmed)
        # A random crash in every second process, for example, passes alone five times and then crashes twice with a
        # probability of 1 in 128. More tries tell it from a crash that depends on the order.
        died, tried = self._tries([*order, case], TRIES - ORDERS, ends)
        return Finding(alone, (again[0] + died, again[1] + tried), cells)

    def _tries(self, order: Sequence[Stretch], tries: int, ends: float) -> tuple[int, int]:
        """Return (crashes, tries). There are fewer tries if time runs out, but at least one."""
        died = tried = 0
        while tried < tries and (not tried or self.clock() < ends):
            died += self.dies(order)
            tried += 1
        return died, tried

    def _culprit(self, order: Sequence[Stretch], case: Stretch, ends: float) -> Stretch | None:
        """Return the single cell, or case of it, after which the case crashes; None if several cells are needed."""
        cell = order[-self._shortest(order, case, ends)]
        if not self.dies([cell, case]):
            return None
        cases = self.pieces(cell)
        if len(cases) < 2 or self.clock() >= ends:
            return cell
        one = cases[-self._shortest(cases, case, ends)]
        return one if self.dies([one, case]) else cell

    def _shortest(self, order: Sequence[Stretch], case: Stretch, ends: float) -> int:
        """Return the length of the shortest tail of ``order`` after which the case crashes.

        The case is known to crash after all of ``order``.
        """
        longest, shortest = 1, 0  # after the loop: crashes after the last `longest`, does not after the last `shortest`
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
    """Return the longest tail of ``before`` that can be repeated in this time."""
    found: list[Stretch] = []
    for stretch, took in reversed(before):
        seconds -= took
        if seconds < 0:
            break
        found.append(stretch)
    return found[::-1]
