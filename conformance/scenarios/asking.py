"""Questions to a device's module and to ``torch.accelerator``, and properties that hold or do not.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from conformance.scenarios.model import NotOffered, Results, offered
from conformance.torch_versions import accelerator_of

Property = Callable[[], bool]


def module_of(device: str) -> types.ModuleType:
    """Return ``torch.<device>``. Raises NotOffered if there is none."""
    found = getattr(torch, device.partition(":")[0], None)
    if not isinstance(found, types.ModuleType):
        raise NotOffered(f"torch.{device.partition(':')[0]}")
    return found


def accelerator(device: str) -> None:
    """Raise NotOffered unless the device is of the type of torch's accelerator."""
    if accelerator_of(torch.device(device).type) is None:
        raise NotOffered("a device that is torch's accelerator")


def another(device: str) -> str:
    """Return the name of another device of the kind, CPU for CPU. Raises NotOffered if there is only one device."""
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return "cpu"
    count = getattr(getattr(torch, kind, None), "device_count", None)
    if count is None or count() < 2:
        raise NotOffered(f"{kind} has no second device")
    return f"{kind}:{(int(index or 0) + 1) % 2}"


@contextmanager
def on_device(index: int) -> Iterator[None]:
    """Make a device of torch's accelerator the current one, and restore the previous one afterwards."""
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(index)
    try:
        yield
    finally:
        torch.accelerator.set_device_index(before)


def held(device: str, properties: dict[str, Property]) -> Results:
    """Return whether each property holds on the device. On CPU each holds, and none is evaluated."""

    def asked(holds: Property) -> Callable[[], torch.Tensor]:
        return lambda: torch.tensor(device == "cpu" or bool(holds()))

    return {name: offered(asked(holds)) for name, holds in properties.items()}


def named(module: types.ModuleType, name: str) -> Callable[..., object]:
    """Return a function of a device's module by its name. Raises NotOffered if the module has no such function."""
    found = getattr(module, name, None)
    if not callable(found):
        raise NotOffered(f"{module.__name__}.{name}")
    return found  # type: ignore[no-any-return]


@contextmanager
def current(stream: torch.Stream) -> Iterator[None]:
    """Make a stream the current one of its device. Restore the previous stream and the current device afterwards.

    The device is restored too, since setting a stream may make its device current.
    """
    before, index = torch.accelerator.current_stream(stream.device), torch.accelerator.current_device_index()
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)
        torch.accelerator.set_device_index(index)
