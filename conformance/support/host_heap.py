"""The host's heap: the bytes in fresh memory, as far as the C library allows a choice, and the detection of damage."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_M_PERTURB = -6  # glibc's mallopt
# glibc keeps small blocks that a thread has freed, seven of each size, and gives them to the thread again unchanged.
_KEPT_SIZES, _KEPT = range(24, 1033, 16), 7


def shake() -> None:
    """Allocate and free blocks of many sizes, so that a damaged heap ends the process now."""
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
    """Make malloc fill blocks that it allocates or frees within this context with patterns made of ``byte``.

    The small blocks that are free at the beginning get the same pattern, because malloc does not fill them. Does
    nothing without glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, byte)
    _fill_small_blocks(byte ^ 0xFF)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)


def _fill_small_blocks(byte: int) -> None:
    c = ctypes.CDLL(None)
    c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    blocks = [(c.malloc(size), size) for size in _KEPT_SIZES for _ in range(_KEPT)]
    for block, size in blocks:
        ctypes.memset(block, byte, size)
        c.free(block)
