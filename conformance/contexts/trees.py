"""Arguments and results as trees of tensors: functions that are copied into scripts of the contexts that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested lists and tuples, in order."""
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def with_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return nested lists and tuples with each tensor replaced by what ``change`` makes of it."""
    if isinstance(value, (list, tuple)):
        return [with_tensors(v, change) for v in value]
    return change(value) if isinstance(value, torch.Tensor) else value


def on_host(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return copies of arguments on CPU, and CPU in place of a device."""

    def copied(value: Any) -> Any:
        return (
            torch.device("cpu") if isinstance(value, torch.device) else with_tensors(value, lambda t: t.cpu().clone())
        )

    return [copied(a) for a in args], {name: copied(a) for name, a in kwargs.items()}


def alike(one: Any, other: Any) -> bool:
    """Whether two results have tensors of the same sizes, strides, offsets, dtypes and, but for rounding, values."""
    ours, theirs = tensors_of(one), tensors_of(other)
    return len(ours) == len(theirs) and all(
        (a.shape, a.stride(), a.storage_offset(), a.dtype) == (b.shape, b.stride(), b.storage_offset(), b.dtype)
        and torch.allclose(a, b, 1e-2, 1e-2, equal_nan=True)
        for a, b in zip(ours, theirs)
    )
