"""The repetition of failures in fresh processes: finds whether a case fails alone, at random, or after other cases.

The case runs alone in fresh processes. If it never fails there, its process's earlier stretches are repeated before it,
first the last one, then longer and longer tails, until it fails. A search then reduces this tail to the cases that the
failure needs. The time is bounded.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from conformance.records import LeftOut, Repeats, Repetition
from conformance.running.protocol import Stretch

# Number of fresh processes in which a case runs alone, and in which an order is confirmed.
TRIES = 5
# Number of fresh processes for a case that fails in some of the first ones, so that the share is known.
MANY = 20
# Number of failures of one signature (overload, check) that are repeated.
ASKED = 2
# Time budget in seconds of a run, or of each of its workers. One failure may take ONE seconds, or PART of the remaining
# time if that is more.
SECONDS = 30.0
ONE = 10.0
PART = 1 / 3
# The longest order whose stretches are left out one by one, to find those that a failure needs.
_SHORT = 12

Fails = Callable[[Sequence[Stretch]], bool]  # whether a fresh process that runs these stretches fails in the last one
Pieces = Callable[[Stretch], Sequence[Stretch]]  # splits a stretch into its cases


@dataclass(frozen=True, slots=True)
class Repeated:
    """The result of repeating a case. See :class:`Repetition` for the fields."""

    kind: Repeats
    alone: tuple[int, int] = (0, 0)
    after: tuple[Stretch, ...] = ()
    confirmed: tuple[int, int] = (0, 0)
    left_out: LeftOut = LeftOut.NOTHING
    like: str = ""

    def record(self, after: tuple[str, ...]) -> Repetition:
        """Return the record. ``after``: the ids of the stretches in ``after``."""
        return Repetition(self.kind, self.alone, after, self.confirmed, self.left_out, self.like)


@dataclass(slots=True)
class FailureInquiry:
    """The repetition of a run's failing cases in fresh processes. ``seconds`` is the time budget for all of them."""

    pieces: Pieces
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    _asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _known: dict[tuple[str, ...], Repeated] = field(default_factory=dict)

    def of(
        self, signature: tuple[str, ...], fails: Fails, case: Stretch, before: Sequence[tuple[Stretch, float]]
    ) -> Repeated:
        """Repeat one case. ``before``: the stretches that its process had run, oldest first, with their seconds.

        After :data:`ASKED` failures of a signature, only the order that an earlier failure needed is tried, if it is
        known.
        """
        self._asked[signature] += 1
        asked, known = self._asked[signature] > ASKED, self._known.get(signature)
        if asked and (known is None or known.kind is not Repeats.ORDERED):
            return Repeated(Repeats.UNKNOWN, left_out=LeftOut.REPEATED, like=known.kind if known else "")
        if self.seconds <= 0:
            return Repeated(Repeats.UNKNOWN, left_out=LeftOut.TIME)
        started = self.clock()
        ends = started + max(min(self.seconds, ONE), self.seconds * PART)
        search = _Search(fails, self.pieces, case, ends, self.clock)
        found = search.like(known) if asked and known else search.result(before)
        self.seconds -= self.clock() - started
        if not asked:
            self._known[signature] = found
        return found


@dataclass(frozen=True, slots=True)
class _Search:
    """The repetitions of one case, until the time ``ends``."""

    fails: Fails
    pieces: Pieces
    case: Stretch
    ends: float
    clock: Callable[[], float]

    def result(self, before: Sequence[tuple[Stretch, float]]) -> Repeated:
        alone = self._tries((), TRIES)
        if alone[0] == alone[1]:
            return Repeated(Repeats.STEADY, alone)
        if alone[0]:
            return Repeated(Repeats.FLAKY, self._tries((), MANY, alone))
        order = [stretch for stretch, _ in before]
        tail, searched = self._tail(order)
        after = self._needed(tail) if tail else ()
        confirmed = self._tries(after, TRIES) if after else (0, 0)
        if confirmed[1] and confirmed[0] == confirmed[1]:
            return Repeated(Repeats.ORDERED, alone, after, confirmed)
        alone = self._tries((), MANY, alone)
        if alone[0] or searched:
            return Repeated(Repeats.FLAKY, alone)
        return Repeated(Repeats.UNKNOWN, alone, left_out=LeftOut.ORDER)

    def like(self, known: Repeated) -> Repeated:
        """Try the order of an earlier failure, once."""
        alone = self._tries((), 1)
        if alone[0]:
            return Repeated(Repeats.UNKNOWN, alone, left_out=LeftOut.REPEATED)
        confirmed = self._tries(known.after, 1)
        if confirmed[0]:
            return Repeated(Repeats.ORDERED, alone, known.after, confirmed)
        return Repeated(Repeats.UNKNOWN, alone, left_out=LeftOut.REPEATED, like=known.kind)

    def _over(self) -> bool:
        return self.clock() >= self.ends

    def _fails(self, after: Sequence[Stretch]) -> bool:
        return self.fails([*after, self.case])

    def _tries(self, after: Sequence[Stretch], tries: int, already: tuple[int, int] = (0, 0)) -> tuple[int, int]:
        """Return (failures, tries), including ``already``. There are fewer tries if time runs out."""
        failed, tried = already
        while tried < tries and (not tried or not self._over()):
            failed += self._fails(after)
            tried += 1
        return failed, tried

    def _tail(self, order: Sequence[Stretch]) -> tuple[Sequence[Stretch], bool]:
        """Return the shortest tail of ``order`` after which the case fails, () if none is found.

        Also return whether the search came to an end: False if time ran out before the case failed.
        """
        passing, length = 0, 1  # the case passes after the last `passing`
        while not (order and self._fails(order[-length:])):
            if length >= len(order):
                return (), True
            if self._over():
                return (), False
            passing, length = length, 2 * length
        length = min(length, len(order))
        while length - passing > 1 and not self._over():
            middle = (passing + length) // 2
            passing, length = (passing, middle) if self._fails(order[-middle:]) else (middle, length)
        return order[-length:], True

    def _needed(self, tail: Sequence[Stretch]) -> tuple[Stretch, ...]:
        """Return the stretches of a tail that the failure needs.

        That is the first one if it suffices. Otherwise, in a tail of at most ``_SHORT`` stretches, those that cannot be
        left out are returned, and a longer tail is returned whole.
        """
        if self._fails(tail[:1]):
            return self._piece(tail[0])
        if len(tail) > _SHORT:
            return tuple(tail)
        kept = list(tail)
        for stretch in tail[1:]:
            fewer = [one for one in kept if one is not stretch]
            if not self._over() and self._fails(fewer):
                kept = fewer
        return tuple(kept)

    def _piece(self, cell: Stretch) -> tuple[Stretch, ...]:
        """Return the one case of a cell that suffices for the failure, the cell if several cases are needed."""
        cases = self.pieces(cell)
        if len(cases) == 1:
            return tuple(cases)
        if self._over():
            return (cell,)
        last, _ = self._tail(cases)
        return tuple(last[:1]) if last and self._fails(last[:1]) else (cell,)
