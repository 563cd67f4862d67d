"""The npu's interface for Dynamo and Inductor, and its statements in generated Python."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor import config
from torch._inductor.codegen.common import (
    DeviceOpOverrides,
    get_device_op_overrides,
    register_device_op_overrides,
)

from refnpu import npu


class NPUInterface(DeviceInterface):
    """The functions of ``torch.npu`` under the names that Dynamo and Inductor call."""

    device = npu.device
    Event = torch.Event
    Stream = npu.Stream

    class Worker:
        """The functions that a process that compiles calls."""

        set_device = staticmethod(npu.set_device)
        current_device = staticmethod(npu.current_device)
        get_device_properties = staticmethod(npu.get_device_properties)

    current_device = staticmethod(npu.current_device)
    set_device = staticmethod(npu.set_device)
    device_count = staticmethod(npu.device_count)
    is_available = staticmethod(npu.is_available)
    stream = staticmethod(npu.stream)
    current_stream = staticmethod(npu.current_stream)
    set_stream = staticmethod(npu.set_stream)
    synchronize = staticmethod(npu.synchronize)
    get_device_properties = staticmethod(npu.get_device_properties)
    memory_allocated = staticmethod(npu.memory_allocated)

    @staticmethod
    def exchange_device(device: int) -> int:
        """Make a device the current one, and return the previous device."""
        before = npu.current_device()
        npu.set_device(device)
        return before

    maybe_exchange_device = exchange_device  # an index below 0 changes nothing

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:  # noqa: ARG004 - torch's signature
        """Return 0: a launch takes the current stream itself."""
        return 0

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        """Return the device's version. It is a part of the keys of Inductor's caches."""
        return "{}.{}".format(*npu.get_device_capability(device))

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:  # noqa: ARG004 - as above
        """Return True: every dtype of the CPU is supported."""
        return True


class NPUOpOverrides(DeviceOpOverrides):
    """The statements of generated Python that depend on the device."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(_):\n    return 0\n"

    def set_device(self, device_idx: int) -> str:
        return f"torch.npu.set_device({device_idx})"

    def synchronize(self) -> str:
        return "torch.npu.synchronize()"

    def device_guard(self, device_idx: int) -> str:
        return f"torch.npu.device({device_idx})"


def register() -> None:
    """Register the interface and the statements, and set ``config.cuda_backend`` to "cpp" if CUDA is not available.

    Inductor applies this setting to devices that it does not know. Where CUDA is available, the setting stays, and
    Inductor makes the npu's kernels by the wrong rules.
    """
    get_device_op_overrides("cpu")  # torch 2.8 registers its own overrides only if there are none
    register_device_op_overrides("npu", NPUOpOverrides())
    register_interface_for_device("npu", NPUInterface)
    for index in range(npu.device_count()):
        register_interface_for_device(f"npu:{index}", NPUInterface)
    if not torch.cuda.is_available():
        config.cuda_backend = "cpp"
