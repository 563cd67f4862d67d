"""Host memory that a backend has lost, as LeakSanitizer finds it: searched for in a child as often as the cost allows.

A search looks through the whole process and takes about a second, so that it comes after a batch of cells, not after
each. What a batch has lost is charged to a cell by running halves of it again, each in a fresh child. What a child has
lost before its first cell is no cell's.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.lanes import sanitizers
from conformance.running import sanitizer_report
from conformance.running.sanitizer_report import Leak
from conformance.vocabulary import CellId

SHARE = 0.05  # of the time, that searches may take

_SEARCH = "__lsan_do_recoverable_leak_check"


def searchable() -> bool:
    """Whether this process can be searched: it has LeakSanitizer's runtime, which AddressSanitizer's contains."""
    return hasattr(ctypes.CDLL(None), _SEARCH)


@dataclass(frozen=True, slots=True)
class Lost:
    """Blocks that nothing points to any more, allocated at one stack."""

    stack: str  # tells it from others
    objects: int
    bytes: int = 0
    at: tuple[str, ...] = ()  # the frames of that stack worth showing, the innermost first
    trouble: str = ""  # what the process said where the search did not end

    def facts(self) -> dict[str, Any]:
        """What a failure says of it."""
        return {"bytes": self.bytes, "objects": self.objects, "at": list(self.at), "trouble": self.trouble}


class Searcher:
    """Lives in the child: finds what the code under test has lost since the search before."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()  # objects lost, by the stack that allocated them

    def search(self) -> list[Lost]:
        """New losses, one for each stack that allocated them. Losses of Python's and torch's are left out."""
        with tempfile.TemporaryFile() as file:
            sanitizers.report_to(file.fileno())
            try:
                ctypes.CDLL(None)[_SEARCH]()
            finally:
                sanitizers.report_to(2)
            file.seek(0)
            leaks = sanitizer_report.leaks(file.read().decode(errors="replace"))
        return [one for one in _by_stack(leaks) if self._is_new(one)]

    def _is_new(self, lost: Lost) -> bool:
        before, self._told[lost.stack] = self._told[lost.stack], lost.objects
        return lost.objects > before


def _by_stack(leaks: Iterable[Leak]) -> list[Lost]:
    """The losses of the code under test. LeakSanitizer may report one stack, as it is printed, several times."""
    found: dict[str, Leak] = {}
    for leak in leaks:
        if leak.own:
            stack = f"{leak.direct} {leak.stack}"
            before = found.get(stack, replace(leak, bytes=0, objects=0))
            found[stack] = replace(leak, bytes=before.bytes + leak.bytes, objects=before.objects + leak.objects)
    return [Lost(stack, leak.objects, leak.bytes, _shown(leak)) for stack, leak in found.items()]


def _shown(leak: Leak) -> tuple[str, ...]:
    return tuple(map(str, sanitizer_report.shown(leak.stack)))


def beyond(lost: Iterable[Lost], baseline: Iterable[Lost]) -> list[Lost]:
    """What of ``lost`` is more than a process that has run no cell has lost as well."""
    known = {one.stack: one.objects for one in baseline}
    return [one for one in lost if one.objects > known.get(one.stack, 0)]


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
