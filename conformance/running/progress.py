"""The page of memory that a child shares with its parent: which case is running, and on which side."""

from __future__ import annotations

import mmap
import struct
import tempfile

_PHASES = ("", "cpu", "device")
_NOTE = struct.Struct("<iB")


class Progress:
    """The page. ``descriptor``: the file that it lies in, open in another process too; without, a new one."""

    def __init__(self, descriptor: int = -1) -> None:
        if descriptor < 0:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the page
            self._file.truncate(mmap.PAGESIZE)
            descriptor = self._file.fileno()
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self.descriptor = descriptor

    def note(self, index: int, phase: str) -> None:
        """Called by the child before each call: a store into memory, no system call."""
        _NOTE.pack_into(self._page, 0, index, _PHASES.index(phase))

    def read(self) -> tuple[int, str]:
        """(index of the case, side) last noted."""
        index, phase = _NOTE.unpack_from(self._page, 0)
        return index, _PHASES[phase]
