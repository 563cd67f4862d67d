"""Steps of recorded work: their end, the saving of values within a step, and the donation of memory."""

from __future__ import annotations

from os import PathLike
from typing import IO, Any

import torch

from refnpu import _C
from refnpu._index import Device, device_index


def mark_step(device: Device | None = None, *, wait: bool = False) -> None:
    """End the step of a device: start all work that is recorded for it. ``wait``: whether to wait for the work.

    Takes the memory of the tensors given to :func:`donate`. If work is not recorded (``REFNPU_LAZY``), all work has
    already started.
    """
    index = device_index(device)
    _C.mark_step(index)
    if wait:
        _C.synchronize(index)


def save(data: Any, file: str | PathLike[str] | IO[bytes]) -> None:
    """Save ``data`` as ``torch.save`` does, with tensors of the npu as CPU tensors.

    Only the recorded work that the saved values need runs. ``data`` may be a tensor, or tuples, lists and dicts of
    tensors.
    """
    torch.save(_on_cpu(data), file)


def donate(*tensors: torch.Tensor) -> None:
    """Give away the memory of tensors at the next :func:`mark_step`. Recorded work still reads them.

    After that step each use of a tensor that shares this memory raises RuntimeError. Raises ValueError for a tensor
    that is not on the npu, NotImplementedError if torch cannot refuse the use of a tensor (before 2.8).
    """
    for tensor in tensors:
        if tensor.device.type != "npu":
            raise ValueError(f"donate: expected tensors of the npu, got one of {tensor.device}")
        _C.donate(tensor)


def _on_cpu(data: Any) -> Any:
    if isinstance(data, torch.Tensor):
        return data.cpu() if data.device.type == "npu" else data
    if isinstance(data, dict):
        return type(data)((key, _on_cpu(value)) for key, value in data.items())
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(_on_cpu, data))
    if isinstance(data, (list, tuple)):
        return type(data)(map(_on_cpu, data))
    return data
