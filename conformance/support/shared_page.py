"""A page of memory that a process shares with its children, which may die at any time."""

from __future__ import annotations

import mmap
import struct
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any


class SharedPage:
    """One record in a page of shared memory. ``layout`` is a format of the ``struct`` module.

    The page is stored in a file. ``descriptor`` is this file, opened in this process. By default, a temporary file is
    made, whose record is all zeros.
    """

    def __init__(self, layout: str, descriptor: int = -1) -> None:
        """Raises ValueError if the file is shorter than a page."""
        self._record = struct.Struct(layout)
        self._close_file: Callable[[], object] = _nothing
        if descriptor < 0:
            file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the page
            file.truncate(mmap.PAGESIZE)
            self._close_file = weakref.finalize(self, file.close)
            descriptor = file.fileno()
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self.descriptor = descriptor

    def close(self) -> None:
        """Free the page, and its temporary file if it has one. The page cannot be used after that.

        Garbage collection does not replace this call: it never frees objects in cycles that were frozen before a fork.
        """
        self._page.close()
        self._close_file()

    def write(self, *values: Any) -> None:
        """Store the record: one copy into memory, without a system call."""
        self._record.pack_into(self._page, 0, *values)

    def read(self) -> tuple[Any, ...]:
        """Return the values of the last :meth:`write`, by any process."""
        return self._record.unpack_from(self._page, 0)


def _nothing() -> None:
    """No-op callback."""


def create(path: Path, layout: str, *values: Any) -> SharedPage:
    """Make a page in the file ``path``, which outlives this process, with these values."""
    path.write_bytes(struct.pack(layout, *values).ljust(mmap.PAGESIZE, b"\0"))
    return at(path, layout)


def at(path: Path, layout: str) -> SharedPage:
    """Open the page in the file ``path``. Raises OSError or ValueError if there is none."""
    with path.open("r+b") as file:
        return SharedPage(layout, file.fileno())
