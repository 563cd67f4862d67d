"""Calls on a new stream, behind the work that makes the arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.contexts.model import Context, How, Op
from conformance.vocabulary import Check


class Stream(Context):
    """The arguments hold zeros until late work of the new stream writes them. An event signals the end of the call."""

    name = "stream"
    op_alone = True
    delays = True
    unchecked = frozenset({Check.VERSION})  # the version counters of arguments that are written twice

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Write the arguments and call the op on a new stream. Wait for an event recorded behind the call."""
        if device.type == "cpu":
            return op(*args, **kwargs)

        def flat(value: Any) -> list[Any]:
            return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]

        tensors = [t for t in flat([*args, *kwargs.values()]) if isinstance(t, torch.Tensor) and t.device == device]
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
        whole = [torch.empty(0, dtype=torch.uint8, device=device).set_(s) for s in storages.values() if s.nbytes()]
        kept = [t.clone() for t in whole]
        here, stream, done = torch.accelerator.current_stream(device), torch.Stream(device), torch.Event(device)
        current = torch.accelerator.current_device_index()
        for t in whole:
            t.zero_()
            t.record_stream(stream)  # the op may free it, e.g. where it resizes an argument
        stream.wait_stream(here)
        torch.accelerator.set_stream(stream)
        try:
            with how.delayed():
                for t, value in zip(whole, kept):
                    t.copy_(value)
            result = op(*args, **kwargs)
            done.record(stream)
        finally:
            torch.accelerator.set_stream(here)
            torch.accelerator.set_device_index(current)
            here.wait_stream(stream)
        done.synchronize()
        return result

    def lacks(self, backend: Capabilities) -> str:
        return "" if backend.is_accelerator else "a device that is torch's accelerator"
