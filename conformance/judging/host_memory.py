"""Equality of bytes in host memory, without a tensor operation. ``torch.equal`` is slow for large tensors."""

from __future__ import annotations

import ctypes

import torch

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two contiguous tensors of bytes on CPU are equal."""
    return a.numel() == b.numel() and not _memcmp(a.data_ptr(), b.data_ptr(), a.numel())


def holds(storage: torch.UntypedStorage, data: torch.Tensor) -> bool:
    """Return whether a CPU storage is exactly the bytes ``data``, a contiguous uint8 tensor on CPU."""
    return storage.nbytes() == data.numel() and not _memcmp(storage.data_ptr(), data.data_ptr(), data.numel())
