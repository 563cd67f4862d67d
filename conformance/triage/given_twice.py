"""Whether a call's result was given memory in which another tensor, that is still there, already lies."""

from __future__ import annotations

from typing import NamedTuple

import torch

from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch
from conformance.torch_versions import StorageWeakRef, storage_behind, storage_id, storage_ref
from conformance.vocabulary import Check, Fact


class Seen(NamedTuple):
    """An argument or a result, and the call that it was of."""

    tensor: str
    call: str


class GivenTwice:
    """Knows where each storage starts that it has seen among arguments and results; keeps none alive.

    An equal start is all that it asks for: on some devices an address is a handle, whose neighbours mean nothing.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.starts: dict[int, tuple[Seen, StorageWeakRef]] = {}  # address -> what lies there

    def look(self, call: str, outcome: CallOutcome) -> list[Mismatch]:
        """The results of a call, named so, that lie where something else does. To be asked after each call."""
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
        """Remember where it lies; what else does, or None."""
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
