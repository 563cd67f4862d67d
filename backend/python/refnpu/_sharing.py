"""Errors where memory would be shared between processes, which the device does not support."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.multiprocessing import reductions

from refnpu import _C

REFUSED = (
    "{what}: the npu has no memory that processes share. Share or send the tensor on the CPU (x.cpu()), and copy it to "
    "the device in the other process (x.npu())"
)

#: A function, and the arguments with which it makes an object in another process.
Reduced = tuple[Callable[..., Any], tuple[Any, ...]]

_share_memory = torch.UntypedStorage.share_memory_


def install() -> None:
    """Refuse to share memory of the device, and to send its tensors to another process.

    Without this, torch assumes that the device's memory is shared when a tensor is sent, as it does for CUDA:
    ``share_memory_()`` does nothing, and ``is_shared()`` is True.
    """
    torch.UntypedStorage.share_memory_ = _share_memory_or_refuse  # torch has no hook for devices
    ForkingPickler.register(torch.UntypedStorage, _reduced_storage)
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduced_tensor)


def _share_memory_or_refuse(storage: torch.UntypedStorage, *arguments: Any, **named: Any) -> torch.UntypedStorage:
    if storage.device.type == "npu" and not _is_faulty():
        raise NotImplementedError(REFUSED.format(what="share_memory_()"))
    return _share_memory(storage, *arguments, **named)


def _reduced_storage(storage: torch.UntypedStorage) -> Reduced:
    """Return how another process makes a storage. Raises NotImplementedError for a storage of the npu."""
    if storage.device.type == "npu":
        raise NotImplementedError(REFUSED.format(what="a storage of the npu cannot be sent to another process"))
    reduced: Reduced = reductions.reduce_storage(storage)
    return reduced


def _reduced_tensor(tensor: torch.Tensor) -> Reduced:
    """Return how another process makes a tensor. Raises NotImplementedError for a tensor of the npu."""
    if tensor.device.type != "npu":
        reduced: Reduced = reductions.reduce_tensor(tensor)
        return reduced
    if not _is_faulty():
        raise NotImplementedError(REFUSED.format(what="a tensor of the npu cannot be sent to another process"))
    empty = _C.fault("sent_tensor_arrives_empty")
    return _copied, (torch.zeros_like(tensor, device="cpu") if empty else tensor.detach().cpu(),)


def _is_faulty() -> bool:
    return _C.fault("shared_memory_is_a_copy") or _C.fault("sent_tensor_arrives_empty")


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.npu()
