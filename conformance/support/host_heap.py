"""The host's heap: what fresh memory holds, as far as the C library lets one choose, and whether it is sound."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_M_PERTURB = -6  # glibc's mallopt


def shake() -> None:
    """Allocate and free blocks of many sizes, so that a damaged heap is noticed here and now."""
    sizes = [16 * (1 + (7 * i) % 499) for i in range(500)]
    blocks = [bytearray(size) for size in sizes]
    del blocks[::2]
    blocks += [bytearray(size) for size in sizes[::3]]
    blocks.clear()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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
