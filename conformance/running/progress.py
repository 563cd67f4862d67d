"""The case that a child is running, and the side: noted in memory that it shares with its parent."""

from __future__ import annotations

from conformance.support.shared_page import SharedPage

_PHASES = ("", "cpu", "device")
_NUMBERS = {phase: number for number, phase in enumerate(_PHASES)}
_LAYOUT = "<iB"  # the index of the case, the index of the side in _PHASES


class Progress:
    """The note. ``descriptor`` is the file that holds it, in a spawned child; without it, a new file is made."""

    def __init__(self, descriptor: int = -1) -> None:
        self._page = SharedPage(_LAYOUT, descriptor)
        self.descriptor = self._page.descriptor

    def close(self) -> None:
        """Give back the memory. The note cannot be read after that."""
        self._page.close()

    def note(self, index: int, phase: str) -> None:
        """Note what runs next. The child calls this before each call of an op."""
        self._page.write(index, _NUMBERS[phase])

    def read(self) -> tuple[int, str]:
        """Return the last note: the index of the case, and the side, "" between two sides."""
        index, phase = self._page.read()
        return index, _PHASES[phase]
