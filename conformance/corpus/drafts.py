"""Conversion of an ATen call to a sample: tensors become slots with values in the pools."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from conformance.corpus.model import (
    Arg,
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    NotStorable,
    Sample,
    TensorSlot,
)
from conformance.corpus.pools import PoolBuilder

SEED = 2026


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def out_formals(schema: Any) -> list[Any]:
    """Return the formal arguments that only receive results, such as ``out=``."""
    return [a for a in schema.arguments if a.is_out]


@dataclass
class Drafter:
    """A converter of calls to samples of one base, which adds the values of tensors to the pools.

    ``fixed`` are the arguments that keep their own dtype even if it equals the base, such as an int64 index.
    """

    pools: PoolBuilder
    base: str
    fixed: frozenset[str] = frozenset()
    _slots: list[TensorSlot] = field(default_factory=list)
    _seen: dict[int, str] = field(default_factory=dict)
    _undefined: frozenset[str] = frozenset()

    def draft(
        self,
        overload: str,
        schema: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        origin: str,
    ) -> Sample:
        """Return a sample named ``origin.digest`` without dtypes. The values of ``out=`` arguments are undefined.

        Raises NotStorable.
        """
        self._slots, self._seen, self._undefined = [], {}, frozenset(a.name for a in out_formals(schema))
        formals = {a.name: a for a in schema.arguments}
        names = [a.name for a in schema.arguments if not a.kwarg_only]
        out_args = tuple(self._arg(formals[n], v) for n, v in zip(names, args, strict=False))
        out_kwargs = tuple((k, self._arg(formals[k], v)) for k, v in kwargs.items())
        tensors = tuple(self._slots)
        name = f"{origin}.{_digest((self.base, out_args, out_kwargs), tensors, self.pools)}"
        return Sample(name, overload, self.base, (), out_args, out_kwargs, tensors)

    def _arg(self, formal: Any, value: Any, name: str = "") -> Arg:
        name = name or formal.name
        if isinstance(value, torch.Tensor):
            return self._tensor(formal, value, name)
        if isinstance(value, (list, tuple)):
            return tuple(self._arg(formal, v, f"{name}[{i}]") for i, v in enumerate(value))
        if value is None or isinstance(value, (bool, int, float, str)):
            return self._number(formal, value)
        return _special(name, value, self.base)

    def _number(self, formal: Any, value: bool | float | str | None) -> Arg:
        """Return a plain value. Raises NotStorable for the number of a ScalarType, which differs between versions."""
        if isinstance(value, int) and str(formal.real_type) in ("ScalarType", "Optional[ScalarType]"):
            raise NotStorable(f"{formal.name} is a dtype given by number")
        return value

    def _tensor(self, formal: Any, t: torch.Tensor, name: str) -> Arg:
        if t.layout is not torch.strided or t.is_quantized or t.is_nested or t.device.type != "cpu":
            raise NotStorable(f"{name} is not a strided CPU tensor")
        if type(t) not in (torch.Tensor, torch.nn.Parameter):
            raise NotStorable(f"{name} is a {type(t).__name__}")
        dtype = dtype_name(t.dtype)
        follows = dtype == self.base and formal.name not in self.fixed
        undefined = formal.name in self._undefined
        pool, start = ("", 0) if undefined else self.pools.add(t)
        slot = TensorSlot(
            index=len(self._slots),
            name=name,
            shape=tuple(t.shape),
            dtype=None if follows else dtype,
            written=formal.alias_info is not None and formal.alias_info.is_write,
            pool=pool,
            start=start,
            same_as=self._seen.get(id(t), ""),
        )
        self._seen.setdefault(id(t), name)
        self._slots.append(slot)
        return slot


def _special(name: str, value: Any, base: str) -> Arg:
    if isinstance(value, torch.dtype):
        spelled = dtype_name(value)
        return DtypeArg(None if spelled == base else spelled)
    if isinstance(value, torch.device):
        if value.type != "cpu":
            raise NotStorable(f"{name} is the device {value}")
        return DeviceArg()
    if isinstance(value, torch.Generator):
        return GeneratorArg(SEED)
    if type(value) not in CONSTANTS:
        raise NotStorable(f"{name} is a {type(value).__name__}")
    return CONSTANTS[type(value)](value)


# Arguments that are the same on every device, by the type of their value.
CONSTANTS: dict[type, Callable[[Any], Arg]] = {
    torch.memory_format: lambda value: EnumArg("memory_format", str(value).removeprefix("torch.")),
    torch.layout: lambda value: EnumArg("layout", str(value).removeprefix("torch.")),
    complex: lambda value: ComplexArg(value.real, value.imag),
}


def _digest(call: object, tensors: tuple[TensorSlot, ...], pools: PoolBuilder) -> str:
    """Return eight hex digits of a hash of structure and values. Positions in the pools do not matter."""
    h = hashlib.sha256(repr(strip(call)).encode())
    for t in tensors:
        if t.pool:
            h.update(pools.digest(t))
    return h.hexdigest()[:8]


def with_slots(sample: Sample, tensors: tuple[TensorSlot, ...]) -> Sample:
    """Return the sample with other slots in the same places."""

    def exchange(arg: Arg) -> Arg:
        if isinstance(arg, TensorSlot):
            return tensors[arg.index]
        return tuple(exchange(a) for a in arg) if isinstance(arg, tuple) else arg

    args = tuple(exchange(a) for a in sample.args)
    return replace(sample, args=args, kwargs=tuple((k, exchange(a)) for k, a in sample.kwargs), tensors=tensors)


def strip(call: object) -> object:
    """Return the call without the positions of its values in the pools."""
    if isinstance(call, TensorSlot):
        return ("tensor", call.name, call.shape, call.dtype, call.pool, call.same_as)
    return tuple(strip(c) for c in call) if isinstance(call, tuple) else call
