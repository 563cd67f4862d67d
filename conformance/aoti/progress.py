"""The file to which a process of `conformance aoti` writes its phase and its facts, in case it dies. No torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.support.whole_file import write_text


class Progress:
    """The facts of the process so far. Each write replaces the whole file."""

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
    """Return an exception's type and its message without the native stack, at most 2000 characters of it."""
    text = str(error).partition("Exception raised from")[0].strip()
    return f"{type(error).__name__}: {text[:2000]}"
