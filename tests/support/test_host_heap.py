"""The content of fresh memory, in a process of its own, since the heap of the tests would hide it."""

from __future__ import annotations

import subprocess
import sys

# Prints the last byte of small blocks as malloc returns them.
SMALL_BLOCKS = """
import ctypes
from conformance.support import host_heap
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
for size in (24, 200, 1032):
    block = c.malloc(size)
    ctypes.memset(block, 7, size)
    c.free(block)
    with host_heap.leftovers(0xBF):
        block = c.malloc(size)
        print(hex(ctypes.string_at(block, size)[-1]))
"""


def test_small_blocks_that_were_freed_hold_the_pattern() -> None:
    done = subprocess.run([sys.executable, "-c", SMALL_BLOCKS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0x40"] * 3
