"""Host memory that a backend has lost, as LeakSanitizer finds it: searched for in a child as often as the cost allows.

A search looks through the whole process and takes about a second, so that it comes after a batch of cells, not after
each. What a batch has lost is charged to a cell by running halves of it again, each in a fresh child.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence

from conformance.lanes import sanitizers
from conformance.running import sanitizer_report
from conformance.running.sanitizer_report import Leak
from conformance.vocabulary import CellId

SHARE = 0.05  # of the time, that searches may take

_SEARCH = "__lsan_do_recoverable_leak_check"


def searchable() -> bool:
    """Whether this process can be searched: it has LeakSanitizer's runtime, which AddressSanitizer's contains."""
    return hasattr(ctypes.CDLL(None), _SEARCH)


class Searcher:
    """Lives in the child: finds what the code under test has lost since the search before."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()  # objects lost, by the stack that allocated them

    def search(self) -> list[str]:
        """One text for each stack that new losses were allocated at. Losses of Python's and torch's are left out."""
        with tempfile.TemporaryFile() as file:
            sanitizers.report_to(file.fileno())
            try:
                ctypes.CDLL(None)[_SEARCH]()
            finally:
                sanitizers.report_to(2)
            file.seek(0)
            found = sanitizer_report.leaks(file.read().decode(errors="replace"))
        return [leak.text() for leak in found if leak.own and self._is_new(leak)]

    def _is_new(self, leak: Leak) -> bool:
        key = f"{leak.direct} {leak.stack}"
        before, self._told[key] = self._told[key], leak.objects
        return leak.objects > before


class Batch:
    """Lives in the parent: the cells that its child has run since the last search, and whether one is due."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.cells: list[CellId] = []
        self._now = now
        self._cost = 0.0  # seconds, of the last search
        self._ended = now()

    def due(self) -> bool:
        """Whether enough time has passed that a search as long as the last one keeps to its share."""
        return self._now() - self._ended >= self._cost / SHARE

    def searched(self, cost: float) -> None:
        """A search has ended that took ``cost`` seconds: what comes now is another batch."""
        self.cells = []
        self._cost, self._ended = cost, self._now()


def culprit(cells: Sequence[CellId], loses: Callable[[Sequence[CellId]], bool]) -> CellId | None:
    """The cell that loses memory when run by itself; None where none does, in as many steps as halving takes.

    ``loses`` runs cells in a fresh process and says whether that lost memory. Of several, one is found.
    """
    left = list(cells)
    while len(left) > 1:
        first, second = left[: len(left) // 2], left[len(left) // 2 :]
        left = first if loses(first) else second
    return left[0] if left and loses(left) else None
