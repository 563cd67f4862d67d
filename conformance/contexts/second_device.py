"""Calls on the second device, while the first one is current: on its default stream, and on a stream of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.contexts.model import Context, How, Op, devices_of
from conformance.contexts.stream import Stream
from conformance.inventory import Overload


class _OnSecond(Context):
    """All arguments are on the second device."""

    def lacks(self, backend: Capabilities) -> str:
        if not backend.is_accelerator:
            return "a device that is torch's accelerator"
        if not backend.device.endswith(":0"):
            return "the first device as the one that is tried"
        return "" if devices_of(backend) > 1 else "a second device"

    def device(self, device: torch.device) -> torch.device:
        return torch.device(device.type, (device.index or 0) + 1)


class SecondDevice(_OnSecond):
    """All work that the call submits late must be work of the second device."""

    name = "second_device"
    op_alone = True
    delays = True

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op while the first device is busy. What it does is done when the second device is synchronized."""
        if device.type == "cpu":
            return op(*args, **kwargs)

        def flat(value: Any) -> list[Any]:
            return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]

        def contents(values: Any) -> list[torch.Tensor]:
            tensors = [t for t in flat(values) if isinstance(t, torch.Tensor) and t.layout == torch.strided]
            storages = [t.untyped_storage() for t in tensors if t.device == device]
            return [torch.empty(0, dtype=torch.uint8, device=device).set_(s).cpu() for s in storages]

        def check() -> None:
            now = torch.accelerator.current_device_index()
            torch.accelerator.set_device_index(before)
            if now != before:
                raise AssertionError(f"the call made device {now} the current one; it was {before}")

        before = torch.accelerator.current_device_index()
        try:
            with how.delayed():
                torch.zeros(1, device=torch.device(device.type, before))
                result = op(*args, **kwargs)
        except Exception:
            check()
            raise
        torch.accelerator.synchronize(device)
        early = contents([result, *args, *kwargs.values()])
        torch.accelerator.synchronize(before)
        late = contents([result, *args, *kwargs.values()])
        check()
        if not all(map(torch.equal, early, late)):
            raise AssertionError(f"work of the call ran on device {before} and not on {device}")
        return result

    def applies(self, overload: Overload) -> bool:
        return overload.base != "_efficientzerotensor"  # its result has no memory to look at


class SecondStream(_OnSecond, Stream):
    """All work that the call submits must be work of a new stream of the second device."""

    name = "second_stream"
