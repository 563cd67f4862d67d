"""Leaks of host memory, which LeakSanitizer finds in the child process.

Python keeps its small objects in its own memory, which does not come from malloc. A search looks for pointers in this
memory as well, because it may hold the only reference to a tensor.
"""

from __future__ import annotations

import bisect
import ctypes
import gc
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.lanes import sanitizers
from conformance.running import sanitizer_report
from conformance.running.sanitizer_report import Leak

_SEARCH = "__lsan_do_recoverable_leak_check"
_REGISTER, _UNREGISTER = "__lsan_register_root_region", "__lsan_unregister_root_region"
_IS_OWN = "__sanitizer_get_ownership"  # whether malloc allocated a block


def searchable() -> bool:
    """Return whether this process has LeakSanitizer's runtime. AddressSanitizer's contains it."""
    return hasattr(ctypes.CDLL(None), _SEARCH)


@dataclass(frozen=True, slots=True)
class Lost:
    """Leaked blocks, allocated at one stack."""

    stack: str  # identifies the stack
    objects: int
    bytes: int = 0
    at: tuple[str, ...] = ()  # the stack's frames in the code under test, the innermost first
    trouble: str = ""  # the process' stderr if it died or hung during the search

    def facts(self) -> dict[str, Any]:
        """Return the facts for the record of a failure."""
        return {"bytes": self.bytes, "objects": self.objects, "at": list(self.at), "trouble": self.trouble}


class Searcher:
    """A search for leaks of the code under test since the last search. Used in the child."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()  # leaked objects by stack

    def search(self) -> list[Lost]:
        """Return new leaks, one for each stack, without the leaks of Python and torch."""
        with tempfile.TemporaryFile() as file:
            sanitizers.report_to(file.fileno())
            try:
                with _python_memory_searched():
                    ctypes.CDLL(None)[_SEARCH]()
            finally:
                sanitizers.report_to(2)
            file.seek(0)
            leaks = sanitizer_report.leaks(file.read().decode(errors="replace"))
        return [one for one in _by_stack(leaks) if self._is_new(one)]

    def _is_new(self, lost: Lost) -> bool:
        before, self._told[lost.stack] = self._told[lost.stack], lost.objects
        return lost.objects > before


@contextmanager
def _python_memory_searched() -> Iterator[None]:
    """Make a search within this context find the pointers in Python's own memory."""
    process = ctypes.CDLL(None)
    gc.collect()  # otherwise ``freeze`` would keep the current garbage
    gc.unfreeze()
    objects = sorted(map(id, gc.get_objects()))
    gc.freeze()  # as in every child
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    regions = mappings_of(objects, maps, lambda address: bool(process[_IS_OWN](ctypes.c_void_p(address))))
    arguments = [(ctypes.c_void_p(start), ctypes.c_size_t(end - start)) for start, end in regions]
    for one in arguments:
        process[_REGISTER](*one)
    try:
        yield
    finally:
        for one in arguments:
            process[_UNREGISTER](*one)


def mappings_of(
    objects: Sequence[int], maps: str, is_from_malloc: Callable[[int], bool] = lambda _: False
) -> list[tuple[int, int]]:
    """Return start and end of each writable anonymous mapping with an object that does not come from malloc.

    ``objects``: addresses, sorted. ``maps``: the text of ``/proc/self/maps``.
    """
    found = []
    for line in maps.splitlines():
        where, mode, *_, path = [*line.split(maxsplit=5), ""][:6]
        start, end = (int(address, 16) for address in where.split("-"))
        inside = objects[bisect.bisect_left(objects, start) : bisect.bisect_left(objects, end)]
        anonymous = not path or path.startswith("[anon:")
        if anonymous and mode.startswith("rw") and not all(map(is_from_malloc, inside)):
            found.append((start, end))
    return found


def _by_stack(leaks: Iterable[Leak]) -> list[Lost]:
    """Return the leaks of the code under test, added up for each stack, which LeakSanitizer may report repeatedly."""
    found: dict[str, Leak] = {}
    for leak in leaks:
        if leak.own:
            stack = f"{leak.direct} {leak.stack}"
            before = found.get(stack, replace(leak, bytes=0, objects=0))
            found[stack] = replace(leak, bytes=before.bytes + leak.bytes, objects=before.objects + leak.objects)
    return [Lost(stack, leak.objects, leak.bytes, _shown(leak)) for stack, leak in found.items()]


def _shown(leak: Leak) -> tuple[str, ...]:
    return tuple(map(str, sanitizer_report.shown(leak.stack)))
