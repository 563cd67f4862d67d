"""The index of a device, which a caller may name in several ways."""

from __future__ import annotations

from typing import TypeAlias

import torch

from refnpu import _C

Device: TypeAlias = int | str | torch.device


def device_index(device: Device | None) -> int:
    """Return the device's index, of the current device for None and for ``npu`` without an index. Raises ValueError."""
    if device is None:
        return _C.current_device()
    if isinstance(device, int):
        return device
    if isinstance(device, str) and _C.fault("device_named_by_string_is_current"):
        return _C.current_device()
    named = torch.device(device)
    if named.type != "npu" and not _C.fault("device_of_host_by_index"):
        raise ValueError(f"expected an npu device, got {named}")
    if named.index is None and _C.fault("device_without_index_is_first"):
        return 0
    return _C.current_device() if named.index is None else named.index
