"""A device without an adapter, with the methods that torch's own modules offer for it.

The methods come from ``torch.<device>``, or else from ``torch.accelerator``. Only calls of the methods touch the
device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class BareDevice:
    """A backend given as ``module:device``, with those methods of an adapter that torch's modules provide.

    Methods of a subclass have priority.
    """

    def __init__(self, name: str, device: str) -> None:
        self.name = name
        self.device = device
        for method, found in (("synchronize", self._synchronize()), ("memory_stats", self._memory_stats())):
            if found and not hasattr(type(self), method):
                setattr(self, method, found)

    @property
    def _module(self) -> Any:
        import torch

        return getattr(torch, self._kind, None)

    @property
    def _kind(self) -> str:
        return self.device.partition(":")[0]

    @property
    def _index(self) -> int:
        return int(self.device.partition(":")[2] or 0)

    def _synchronize(self) -> Callable[[], None] | None:
        own = getattr(self._module, "synchronize", None)
        if callable(own):
            return own  # type: ignore[no-any-return]  # torch's
        accelerator = self._accelerator()
        return (lambda: accelerator.synchronize(self._index)) if accelerator else None

    def _accelerator(self) -> Any:
        """Return ``torch.accelerator`` if this device is the accelerator."""
        from conformance.torch_versions import accelerator_of  # imports torch

        return accelerator_of(self._kind)

    def _memory_stats(self) -> Callable[[], dict[str, int]] | None:
        """Return a function for the bytes in use, None without one. It returns 0 blocks, which torch may not count."""
        for module in (self._module, self._accelerator()):
            allocated = getattr(module, "memory_allocated", None)
            if callable(allocated):
                return lambda: {"live_blocks": 0, "live_bytes": int(allocated(self._index))}
        return None
