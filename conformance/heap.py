"""What freshly allocated host memory holds, as far as the C library lets one choose."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_M_PERTURB = -6  # glibc's mallopt


@contextlib.contextmanager
def leftovers(byte: int) -> Iterator[None]:
    """Within, malloc fills what it gives and takes back with patterns made of ``byte``. A no-op without glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, byte)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)
