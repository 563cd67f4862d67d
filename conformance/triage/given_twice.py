"""Detection of results whose memory the allocator gave to another tensor that is still alive."""

from __future__ import annotations

from typing import NamedTuple

import torch

from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch
from conformance.torch_versions import StorageWeakRef, storage_behind, storage_id, storage_ref
from conformance.vocabulary import Check, Fact


class Seen(NamedTuple):
    """An argument or a result of a call."""

    tensor: str
    call: str


class GivenTwice:
    """The start addresses of the storages of arguments and results. Keeps no storage alive.

    Only equal addresses count as an overlap, because on some devices an address is a handle.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.starts: dict[int, tuple[Seen, StorageWeakRef]] = {}  # address -> the tensor at it

    def look(self, call: str, outcome: CallOutcome) -> list[Mismatch]:
        """Return the results of a call that share memory with a live tensor. Must be called after each call."""
        for argument in outcome.side.arguments:
            self._see(Seen(argument.slot.name, call), argument.tensor)
        found = []
        for name, leaf in outcome.leaves:
            other = self._see(Seen(name, call), leaf) if isinstance(leaf, torch.Tensor) else None
            if other:
                facts = {"kind": Fact.GIVEN_TWICE.value, "tensor": other.tensor, "call": other.call}
                found.append(Mismatch(Check.ALIASING, name, facts))
        return found

    def _see(self, name: Seen, tensor: torch.Tensor) -> Seen | None:
        """Store the address of a storage. Return the live tensor at the same address, None if there is none."""
        if tensor.device.type != self._device.type or tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        start = storage.data_ptr() if storage.nbytes() else 0
        if not start:
            return None
        known = self.starts.get(start)
        other = storage_behind(known[1]) if known else None
        if known and other and other.data_ptr() == start and storage_id(other) != storage_id(storage):
            return known[0]
        self.starts[start] = name, storage_ref(storage)
        return None
