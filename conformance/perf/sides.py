"""A sample as a call on CPU and as a call on the device, each with contiguous arguments of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from conformance import ops
from conformance import torch_versions as tv
from conformance.corpus.calls import HasValues, argument, tensors_of
from conformance.corpus.model import Arg, DeviceArg, GeneratorArg, Sample, TensorSlot
from conformance.inventory import call_of

CPU = "cpu"


@dataclass(frozen=True)
class Side:
    """A call that can be repeated. ``tensors``: the tensors of the sample's slots."""

    sample: Sample
    tensors: list[torch.Tensor]
    args: list[Any]
    kwargs: dict[str, Any]
    op: Callable[..., Any]

    def __call__(self) -> Any:
        return self.op(*self.args, **self.kwargs)

    def metadata(self) -> list[object]:
        """Return each argument's sizes, strides, offset and storage. A call that changes them cannot be repeated."""
        return [(t.shape, t.stride(), t.storage_offset(), tv.storage_id(t)) for t in self.tensors]


def side(sample: Sample, dtype: str, values: HasValues, device: str = CPU) -> Side:
    """Return the sample's call on a device. Errors of making the arguments there are not caught."""
    known = ops.facts(sample.overload).host
    made = tensors_of(sample, dtype, values)
    moved = {id(t): t if _stays(s, known, device) else t.to(device) for s, t in zip(sample.tensors, made, strict=True)}
    tensors = [moved[id(t)] for t in made]
    args = [_argument(a, dtype, tensors, device) for a in sample.args]
    kwargs = {k: _argument(a, dtype, tensors, device) for k, a in sample.kwargs}
    return Side(sample, tensors, args, kwargs, call_of(sample.overload))


def _stays(slot: TensorSlot, on_host: tuple[str, ...], device: str) -> bool:
    return device == CPU or slot.on_host or slot.argument in on_host


def _argument(arg: Arg, dtype: str, tensors: list[torch.Tensor], device: str) -> Any:
    if isinstance(arg, DeviceArg) and not arg.name:
        return torch.device(device)
    if isinstance(arg, GeneratorArg):
        return torch.Generator(device).manual_seed(arg.seed)
    if isinstance(arg, tuple):
        return [_argument(a, dtype, tensors, device) for a in arg]
    return argument(arg, dtype, tensors)


def leaves(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in leaves(r)] if isinstance(result, (list, tuple)) else []
