"""The C library's checking allocator, which ends a process that has written past a block of memory."""

from __future__ import annotations

import ctypes
import os
import sys

_LIBRARY = "libc_malloc_debug.so.0"  # glibc's, from 2.34 on
_ON = {"MALLOC_CHECK_": "3", "GLIBC_TUNABLES": "glibc.malloc.check=3"}


def is_here() -> bool:
    """Return whether the allocator can be loaded."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def restart() -> None:
    """Run this command again with the allocator. Return if the command already runs with it, or if it is missing."""
    if "MALLOC_CHECK_" in os.environ or not is_here():
        return
    loaded = ":".join(filter(None, (_LIBRARY, os.environ.get("LD_PRELOAD", ""))))
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | _ON | {"LD_PRELOAD": loaded})
