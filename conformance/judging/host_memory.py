"""Equality of bytes in host memory, without a tensor operation."""

from __future__ import annotations

import ctypes

import torch

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def holds(storage: torch.UntypedStorage, data: torch.Tensor) -> bool:
    """Return whether a CPU storage is exactly the bytes ``data``, a contiguous uint8 tensor on CPU."""
    size = data.numel()
    if storage.nbytes() != size:
        return False
    return size == 0 or bool(_memcmp(storage.data_ptr(), data.data_ptr(), size) == 0)
