"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(file: Path) -> Iterator[Path]:
    """Yield the path of a new file beside ``file``, which the caller writes, and which replaces ``file`` at the end.

    After an exception, including KeyboardInterrupt, ``file`` is unchanged. If ``file`` is a symbolic link, its target
    is replaced, and the link stays. Raises OSError if that is impossible.
    """
    file = file.resolve()
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield scratch
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(file: Path, text: str) -> None:
    """Write a text in UTF-8. After an OSError, ``file`` is unchanged."""
    with replaced(file) as scratch:
        scratch.write_text(text, encoding="utf-8")
