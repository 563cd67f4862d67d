"""The value pools of a corpus during its build. Equal values are stored once."""

from __future__ import annotations

import hashlib

import torch

from conformance.corpus.model import TensorSlot
from conformance.corpus.values import POOL_OF_KIND, convert, kind_of


class PoolBuilder:
    """A builder of value pools. Equal bytes are stored once."""

    def __init__(self) -> None:
        self._parts: dict[str, list[torch.Tensor]] = {}
        self._sizes: dict[str, int] = {}
        self._seen: dict[tuple[str, bytes], int] = {}
        self._at: dict[tuple[str, int, int], tuple[torch.Tensor, bytes]] = {}

    def add(self, values: torch.Tensor) -> tuple[str, int]:
        """Add values. Return their pool (float32, int64, bool, complex64 or float64) and their start, in elements."""
        dtype = str(values.dtype).removeprefix("torch.")
        pool = "float64" if dtype == "float64" else POOL_OF_KIND[kind_of(dtype)]
        flat = values.detach().resolve_conj().resolve_neg().reshape(-1).to(getattr(torch, pool)).clone()
        data = flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        digest = hashlib.sha256(data).digest()
        start = self._seen.get((pool, digest))
        if start is None:
            start = self._seen[(pool, digest)] = self._sizes.get(pool, 0)
            self._parts.setdefault(pool, []).append(flat)
            self._sizes[pool] = start + flat.numel()
            self._at[(pool, start, flat.numel())] = flat, digest
        return pool, start

    def range(self, slot: TensorSlot) -> torch.Tensor:
        """Return the stored values of a slot, one-dimensional."""
        return self._at[(slot.pool, slot.start, slot.numel)][0]

    def value(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        """See :meth:`conformance.corpus.values.Values.value`."""
        return convert(self.range(slot), slot.dtype or dtype).view(slot.shape)

    def digest(self, slot: TensorSlot) -> bytes:
        """Return the SHA-256 of the stored values of a slot."""
        return self._at[(slot.pool, slot.start, slot.numel)][1]

    def pools(self) -> dict[str, torch.Tensor]:
        return {pool: torch.cat(parts) for pool, parts in sorted(self._parts.items())}
