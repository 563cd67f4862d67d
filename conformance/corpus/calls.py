"""A sample as a call on contiguous CPU tensors, to build and validate the corpus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from conformance.corpus.model import (
    Arg,
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    Sample,
    TensorSlot,
)


class HasValues(Protocol):
    def value(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        """See :meth:`conformance.corpus.values.Values.value`."""


def plain_call(sample: Sample, dtype: str, values: HasValues) -> tuple[list[Any], dict[str, Any]]:
    """Return fresh positional and keyword arguments for a cell of ``dtype``. Undefined tensors have a fill pattern."""
    tensors = tensors_of(sample, dtype, values)
    args = [argument(a, dtype, tensors) for a in sample.args]
    return args, {k: argument(a, dtype, tensors) for k, a in sample.kwargs}


def tensors_of(sample: Sample, dtype: str, values: HasValues) -> list[torch.Tensor]:
    """Return a fresh tensor for each slot. Slots that are the same tensor share it."""
    by_name: dict[str, torch.Tensor] = {}
    for slot in sample.tensors:
        if slot.same_as:
            by_name[slot.name] = by_name[slot.same_as]
        elif slot.pool:
            by_name[slot.name] = values.value(slot, dtype).clone()
        else:
            by_name[slot.name] = pattern(slot.shape, slot.dtype or dtype)
    return [by_name[s.name] for s in sample.tensors]


def pattern(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    """Return a tensor with the initial values of an output: NaN if the dtype has it, else bytes 0x55."""
    t = torch.empty(shape, dtype=getattr(torch, dtype))
    if t.numel():
        t.view(-1).view(torch.uint8).fill_(1 if t.dtype == torch.bool else 0x55)
    if (t.is_floating_point() and t.element_size() > 1) or (t.is_complex() and t.element_size() > 4):
        t.fill_(float("nan"))
    return t


def argument(arg: Arg, dtype: str, tensors: list[torch.Tensor]) -> Any:
    """Return the value of one argument."""
    if isinstance(arg, TensorSlot):
        return tensors[arg.index]
    if isinstance(arg, tuple):
        return [argument(a, dtype, tensors) for a in arg]
    return _VALUES[type(arg)](arg, dtype) if type(arg) in _VALUES else arg


_VALUES: dict[type, Callable[[Any, str], Any]] = {
    DtypeArg: lambda a, dtype: getattr(torch, a.name or dtype),
    DeviceArg: lambda _, __: torch.device("cpu"),
    EnumArg: lambda a, _: getattr(torch, a.name),
    GeneratorArg: lambda a, _: torch.Generator().manual_seed(a.seed),
    ComplexArg: lambda a, _: complex(a.real, a.imag),
}
