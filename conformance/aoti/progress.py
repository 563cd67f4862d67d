"""The file in which a process of `conformance aoti` says what it does, in case that it dies. No torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.support.whole_file import write_text


class Progress:
    """What the process knows so far. The file is replaced as a whole."""

    def __init__(self, file: Path) -> None:
        self._file, self._facts = file, {"phase": "prepare"}

    def tell(self, **facts: Any) -> None:
        """Add facts, and write all of them."""
        self._facts |= facts
        write_text(self._file, json.dumps(self._facts))


def read(file: Path) -> dict[str, Any]:
    """Return the facts; the phase "prepare" alone if there is no file."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"phase": "prepare"}
    return found


def first_lines(error: BaseException) -> str:
    """Return an exception's type and the first lines of its message; a native stack follows in many."""
    text = str(error).partition("Exception raised from")[0].strip()
    return f"{type(error).__name__}: {text[:2000]}"
