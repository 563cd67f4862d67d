"""A note of the case, the side and the script's lines that a child runs, in memory that it shares with its parent."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Sequence

from conformance.support.shared_page import SharedPage

_PHASES = ("", "cpu", "device")
_NUMBERS = {phase: number for number, phase in enumerate(_PHASES)}
# The index of the case, the index of the side in _PHASES, and the length in bytes of the script, which follows the
# page.
_LAYOUT = "<iBI"


class Progress:
    """The note. ``descriptor``: the open file that holds it, in a spawned child. By default, a new file is made."""

    def __init__(self, descriptor: int = -1) -> None:
        self._page = SharedPage(_LAYOUT, descriptor)
        self.descriptor = self._page.descriptor

    def close(self) -> None:
        """Free the memory. The note cannot be read after that."""
        self._page.close()

    def note(self, index: int, phase: str) -> None:
        """Note what runs next. The child calls this before each call of an op."""
        self._page.write(index, _NUMBERS[phase], 0)

    def note_script(self, lines: Sequence[str]) -> None:
        """Note the lines of the script that runs next on this side, or no lines when it has ended."""
        index, phase, _ = self._page.read()
        text = json.dumps(lines).encode() if lines else b""
        os.pwrite(self.descriptor, text, mmap.PAGESIZE)
        self._page.write(index, phase, len(text))

    def read(self) -> tuple[int, str]:
        """Return the last note: the index of the case, and the side, "" between two sides."""
        index, phase, _ = self._page.read()
        return index, _PHASES[phase]

    def script(self) -> tuple[str, ...]:
        """Return the lines of the script that ran at the last note, () if no script ran."""
        _, _, length = self._page.read()
        return tuple(json.loads(os.pread(self.descriptor, length, mmap.PAGESIZE))) if length else ()
