"""Calls while float64 is the default dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op


class DefaultDtype(Context):
    """Results that get torch's default dtype, such as those of integers and floats, are float64."""

    name = "default_dtype"

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op while the default dtype is float64."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return op(*args, **kwargs)
        finally:
            torch.set_default_dtype(before)
