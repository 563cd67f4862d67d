"""The parent's search for the cells that leak host memory in a child.

A search scans the whole process of the child and takes about a second. Therefore, it runs after a batch of cells, not
after each cell. To find the cell that leaks, halves of the batch run again in fresh children. Leaks of a child before
its first cell do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from conformance.records import Observation
from conformance.running.child import Child
from conformance.running.endings import with_leak
from conformance.running.host_leaks import Lost
from conformance.running.protocol import SEARCH, Stretch
from conformance.vocabulary import CellId

SHARE = 0.05  # share of the run's time that searches may take
SEARCH_TIMEOUT = 120  # seconds that a search may take, in addition to the timeout of a cell


class Batch:
    """The cells that a child has run since the last search."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.cells: list[CellId] = []
        self._now = now
        self._cost = 0.0  # seconds of the last search
        self._ended = now()

    def due(self) -> bool:
        """Return whether a search as long as the last one would stay within its share of the time."""
        return self._now() - self._ended >= self._cost / SHARE

    def searched(self, cost: float) -> None:
        """Begin a new batch after a search that took ``cost`` seconds."""
        self.cells = []
        self._cost, self._ended = cost, self._now()


class LeakSearch:
    """The search of one child at a time, after each batch of cells.

    ``fresh`` starts a child. ``timeout`` returns the seconds that a cell may take.
    """

    def __init__(self, fresh: Callable[[], Child], timeout: Callable[[CellId], float]) -> None:
        self._fresh = fresh
        self._timeout = timeout
        self._batch = Batch()
        self._baseline: list[Lost] | None = None  # leaks of a child before its first cell, once known

    def add(self, cell: CellId) -> None:
        """Add a cell that the child has run."""
        self._batch.cells.append(cell)

    @property
    def is_due(self) -> bool:
        """Whether the child is to be searched now."""
        return self._batch.due()

    def forget(self) -> None:
        """Begin a new batch, because a child that has ended cannot be searched."""
        self._batch.cells = []

    def searched(self, observation: Observation, child: Child) -> Observation:
        """Return the observation of the last cell, with the leaks of all cells since the previous search."""
        if not self._batch.cells:
            return observation
        cells, started = self._batch.cells, time.monotonic()
        lost = self._lost(child, cells[-1])
        self._batch.searched(time.monotonic() - started)
        if not lost:
            return observation
        return with_leak(observation, lost, cells, culprit(cells, self._loses))

    def _lost(self, child: Child, last: CellId) -> list[Lost]:
        """Return the leaks of a child since its last search, without those before its first cell."""
        found = self._found(child, last)
        if found and self._baseline is None:
            idle = self._fresh()
            self._baseline = self._found(idle, last)
            idle.close()
        return beyond(found, self._baseline or ())

    def _found(self, child: Child, last: CellId) -> list[Lost]:
        reply = child.ask(SEARCH, self._timeout(last) + SEARCH_TIMEOUT)
        if isinstance(reply, dict):
            return [Lost(**{**one, "at": tuple(one["at"])}) for one in reply["lost"]]
        return [Lost("", 1, trouble=reply.log or "it said nothing")]

    def _loses(self, cells: Sequence[CellId]) -> bool:
        """Return whether these cells leak memory again in a fresh child."""
        child = self._fresh()
        try:
            for cell in cells:
                if not isinstance(child.ask(Stretch(cell).request(), self._timeout(cell)), dict):
                    return False
            return bool(self._lost(child, cells[-1]))
        finally:
            child.close()


def beyond(lost: Iterable[Lost], baseline: Iterable[Lost]) -> list[Lost]:
    """Return the leaks with more blocks than in ``baseline``, which are the leaks of a process that has run no cell."""
    known = {one.stack: one.objects for one in baseline}
    return [one for one in lost if one.objects > known.get(one.stack, 0)]


def culprit(cells: Sequence[CellId], loses: Callable[[Sequence[CellId]], bool]) -> CellId | None:
    """Return a cell that leaks memory when it runs alone, None if there is none. Uses binary search.

    ``loses`` runs cells in a fresh process and returns whether they leak.
    """
    left = list(cells)
    while len(left) > 1:
        first, second = left[: len(left) // 2], left[len(left) // 2 :]
        left = first if loses(first) else second
    return left[0] if left and loses(left) else None
