"""Directories that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_beside(target: Path) -> Iterator[Path]:
    """Yield a new directory, which the caller fills and then renames to ``target``. Otherwise it is removed at the end.

    A directory that a killed process with the same process id has left is removed first. Raises OSError.
    """
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
