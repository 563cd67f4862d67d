"""A recorded call: a case with the bytes of the program's storages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from conformance.corpus.model import TensorSlot
from conformance.judging.twins import Twins
from conformance.judging.views import torch_dtype
from conformance.layouts import Placement
from conformance.plan.case import Case


@dataclass(frozen=True)
class Call:
    """One call. ``storages``: the bytes before the call, on CPU, by the ``pool`` of their slots."""

    case: Case
    storages: Mapping[str, torch.Tensor]

    @property
    def overload(self) -> str:
        return self.case.sample.overload

    @property
    def elements(self) -> int:
        """The size of all storages in bytes."""
        return sum(t.numel() for t in self.storages.values())


class RecordedTwins(Twins):
    """Twins that are made from recorded bytes, not from the values of a sample."""

    def __init__(self, storages: Mapping[str, torch.Tensor]) -> None:
        super().__init__(_no_values)
        self._storages = storages

    def bytes_before(self, slot: TensorSlot, placement: Placement, dtype: str, wide: str) -> torch.Tensor:
        """Return the recorded bytes; if ``wide`` differs from ``dtype``, the same numbers in that dtype."""
        base = self._storages[slot.pool]
        used = base[: placement.storage * torch_dtype(dtype).itemsize]
        if wide == dtype:
            return used
        return used.view(torch_dtype(dtype)).to(torch_dtype(wide)).view(torch.uint8)


def _no_values(slot: TensorSlot, dtype: str) -> torch.Tensor:
    raise ValueError(f"{slot.name}: a recorded call has bytes, not values ({dtype})")
