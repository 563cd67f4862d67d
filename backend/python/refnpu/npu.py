"""The module that torch knows as ``torch.npu``: devices, and names from the modules for memory, random and streams."""

from __future__ import annotations

import os
import sys
from functools import wraps
from types import SimpleNamespace
from typing import NamedTuple

import torch

from refnpu import _C, _sharing
from refnpu._index import Device, device_index
from refnpu._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from refnpu._random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from refnpu._streams import Event, Stream, current_stream, default_stream, set_stream, stream

_IMPORTED_BY = os.getpid()

FORKED = (
    "the npu cannot be used in a process that was forked after its parent had used the device: fork before the first "
    "use, or start the process with torch.multiprocessing's 'spawn' method"
)


def install() -> None:
    """Rename PrivateUse1 to ``npu``, and register this module as ``torch.npu``."""
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _sharing.install()
    torch.serialization.register_package(19, _tag_without_index, _left_on_host)
    if _C.fault("import_needs_a_device"):
        get_device_name(0)
    if _C.fault("import_draws_on_host"):
        torch.rand(1)
    if _C.faults():  # a build without faults leaves torch's method alone
        _wrap_npu_method()
    if torch.distributed.is_available():
        from refnpu import _process_group  # needs a torch that is built with torch.distributed

        _process_group.install()


def _tag_without_index(storage: torch.UntypedStorage) -> str | None:
    """Return a storage's tag if fault save_forgets_device_index is awake, else None."""
    return "npu" if storage.device.type == "npu" and _C.fault("save_forgets_device_index") else None


def _left_on_host(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage | None:
    """Return an empty storage of the device unmoved if fault load_leaves_empty_on_host is awake, else None."""
    left = location.startswith("npu") and storage.nbytes() == 0 and _C.fault("load_leaves_empty_on_host")
    return storage if left else None


def _wrap_npu_method() -> None:
    """Add fault npu_method_stays_on_device to the method npu() of tensors."""
    moved = torch.Tensor.npu

    @wraps(moved)
    def npu(tensor: torch.Tensor, *arguments: object, **named: object) -> torch.Tensor:
        if not torch.compiler.is_compiling() and tensor.device.type == "npu" and _C.fault("npu_method_stays_on_device"):
            return tensor
        return moved(tensor, *arguments, **named)

    torch.Tensor.npu = npu


class DeviceProperties(NamedTuple):
    """The properties of a device; memory in bytes."""

    name: str
    total_memory: int
    multi_processor_count: int
    major: int
    minor: int


class device:  # noqa: N801  # torch.cuda.device and its like are spelt so
    """Context manager that makes a device the current one; an index below 0 or None changes nothing."""

    def __init__(self, device: Device | None) -> None:
        self._index = -1 if device is None else device_index(device)
        self._previous = current_device() if _C.fault("device_block_restores_where_made") else -1

    def __enter__(self) -> None:
        if not _C.fault("device_block_restores_where_made"):
            self._previous = current_device()
        if self._index >= 0:
            _C.set_device(self._index)

    def __exit__(self, *exc_info: object) -> None:
        if exc_info[0] is not None and _C.fault("device_block_left_by_error"):
            return
        _C.set_device(self._previous)


def is_available() -> bool:
    """Return whether there is a device. Touches no device."""
    if _C.fault("is_available_uses_device"):
        _C.synchronize(0)
    return _C.device_count() > 0


def is_initialized() -> bool:
    """Return whether this process has used a device."""
    return _C.device_used() and not _C.fault("is_initialized_stays_false")


def __getattr__(name: str) -> object:
    """Return attributes that torch asks for: ``_initialized``, and the classes of Inductor's code generators.

    If ``_initialized`` is True, ``torch.utils.checkpoint`` keeps the states of generators.
    """
    if name == "_initialized" and _C.fault("checkpoint_state_not_kept"):
        return False
    if name == "_utils" and _C.fault("load_on_current_device"):
        return SimpleNamespace(_get_device_index=lambda *_: current_device())
    if name == "_utils" and _C.fault("load_takes_last_device"):
        return SimpleNamespace(_get_device_index=lambda named, *_: min(device_index(named), device_count() - 1))
    if name == "_utils" and _C.fault("load_leaves_device_current"):
        return SimpleNamespace(_get_device_index=_index_made_current)
    if name == "_initialized":
        return is_initialized()
    if name in ("Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"):
        from refnpu._inductor import CODEGENS  # torch._inductor, which takes seconds to import

        return CODEGENS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _index_made_current(named: Device, *_: object) -> int:
    """Make a device the current one and return its index: fault load_leaves_device_current."""
    set_device(named)
    return device_index(named)


def init() -> None:
    """Raise RuntimeError in a process that was forked too late. No other work is needed before the first use."""
    _lazy_init()


def device_count() -> int:
    """Return the number of devices: ``REFNPU_DEVICES``, by default 3."""
    return _C.device_count()


def current_device() -> int:
    """Return the index of this thread's current device."""
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make a device this thread's current one; an index below 0 changes nothing."""
    index = device_index(device)
    if index < 0 and _C.fault("set_device_of_negative_is_last"):
        index += device_count()
    if index >= 0:
        _C.set_device(index)


def synchronize(device: Device | None = None) -> None:
    """Return when all work submitted to the device's streams is done."""
    _C.synchronize(device_index(device))


def get_device_properties(device: Device | None = None) -> DeviceProperties:
    """Return the name, memory and other properties of a device."""
    return DeviceProperties(*_C.device_properties(device_index(device)))


def get_device_name(device: Device | None = None) -> str:
    """Return the device's name."""
    return get_device_properties(device).name


def get_device_capability(device: Device | None = None) -> tuple[int, int]:
    """Return the device's version, major and minor."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def is_bf16_supported() -> bool:
    """Return True: every dtype of the CPU is supported."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes to which ``torch.autocast("npu")`` may lower."""
    if _C.fault("autocast_refuses_float16"):
        return [torch.bfloat16]
    return [torch.bfloat16, torch.float16]


def _is_in_bad_fork() -> bool:
    if os.getpid() != _IMPORTED_BY and _C.fault("seed_skipped_in_any_fork"):
        return True
    return _C.is_forked()


def _lazy_init() -> None:
    if _C.is_forked():
        raise RuntimeError(FORKED)


__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "install",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
