"""Calls after an error of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op


class AfterError(Context):
    """Before the call, an allocation does not fit, or the overload raises. Neither may affect the call."""

    name = "after_error"
    op_alone = True

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op. Without a variant, ask for 2^60 bytes of device memory before."""
        import contextlib

        if device != torch.device("cpu") and not how.variant:
            with contextlib.suppress(RuntimeError, MemoryError):
                torch.empty(1 << 60, dtype=torch.uint8, device=device)
                raise AssertionError(f"{device} gave a tensor of 2^60 bytes")
        return op(*args, **kwargs)
