"""Capture of a live ATen call before it runs, as a case with the bytes of its storages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import ops
from conformance.calls.model import Call
from conformance.corpus.drafts import CONSTANTS
from conformance.corpus.model import Arg, DeviceArg, DtypeArg, GeneratorArg, NotStorable, Sample, TensorSlot
from conformance.inventory import overload_of
from conformance.judging.twins import Argument, Side
from conformance.layouts import Placement, contiguous_stride
from conformance.plan.case import Case
from conformance.torch_versions import has_no_memory, neg_view, schema_of, storage_id
from conformance.vocabulary import CellId

RECORDED = "recorded"


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return all tensors in nested arguments or results."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for v in value for t in tensors_in(v)] if isinstance(value, (list, tuple)) else []


def touches(device: torch.device, value: Any) -> bool:
    """Return whether a nested value contains a tensor on this type of device, or the device itself."""
    if isinstance(value, (torch.Tensor, torch.device)):
        kind = value.type if isinstance(value, torch.device) else value.device.type
        return bool(kind == device.type)
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, (list, tuple)) and any(touches(device, v) for v in value)


@dataclass
class Capture:
    """The state of one capture. ``with_bytes``: whether the bytes of the storages are kept."""

    device: torch.device
    with_bytes: bool = True
    storages: dict[str, torch.Tensor] = field(default_factory=dict)
    _arguments: list[Argument] = field(default_factory=list)
    _placements: list[Placement] = field(default_factory=list)
    _shared: list[tuple[int, int, int]] = field(default_factory=list)
    _at: dict[int, int] = field(default_factory=dict)  # id of a storage -> the first slot in it

    def take(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> tuple[Call, Side]:
        """Return the call and its live arguments. Must be called before the op runs.

        ``name`` becomes the name of the sample. Raises NotStorable.
        """
        formals = {a.name: a for a in schema_of(func).arguments}
        names = [a.name for a in schema_of(func).arguments if not a.kwarg_only]
        positional = tuple(self._arg(formals[n], v, n) for n, v in zip(names, args, strict=False))
        named = tuple((k, self._arg(formals[k], v, k)) for k, v in kwargs.items())
        slots = tuple(a.slot for a in self._arguments)
        dtype = next((s.dtype for s in slots if s.dtype), None) or "float32"
        overload = overload_of(func)
        sample = Sample(name, overload, dtype, (dtype,), positional, named, slots)
        cell = CellId(ops.facts(overload).family, overload, dtype, self._layout())
        call = Call(Case(cell, sample, "", tuple(self._placements), tuple(self._shared)), self.storages)
        return call, Side(self.device, self._arguments, tuple(args), dict(kwargs))

    def _layout(self) -> str:
        return RECORDED if any(p.layout != "contiguous" for p in self._placements) or self._shared else "contiguous"

    def _arg(self, formal: Any, value: Any, name: str) -> Arg:
        if isinstance(value, torch.Tensor):
            return self._tensor(formal, value, name)
        if isinstance(value, (list, tuple)):
            return tuple(self._arg(formal, v, f"{name}[{i}]") for i, v in enumerate(value))
        if value is None or type(value) in (bool, int, float, str):
            plain: bool | int | float | str | None = value
            return plain
        return _special(name, value, self.device)

    def _tensor(self, formal: Any, t: torch.Tensor, name: str) -> TensorSlot:
        check_storable(t, name, self.device)
        index, key = len(self._arguments), storage_id(t)
        dtype, on_host = str(t.dtype).removeprefix("torch."), t.device.type != self.device.type
        written = formal.alias_info is not None and bool(formal.alias_info.is_write)
        earlier = self._at.setdefault(key, index)
        pool = f"s{earlier}"
        slot = TensorSlot(index, name, tuple(t.shape), dtype, written, pool, 0, on_host=on_host)
        if earlier == index:
            base = bytes_of(t)
            before = self._bytes(base)
            self.storages[pool] = before
        else:
            base, before = self._share(t, slot, earlier)
        placement = placement_of(t, base.numel())
        self._placements.append(placement)
        self._arguments.append(Argument(slot, placement, base, t, before))
        return slot

    def _bytes(self, base: torch.Tensor) -> torch.Tensor:
        """Return a copy of a storage's bytes on CPU; an empty tensor if bytes are not kept."""
        if not self.with_bytes:
            return torch.empty(0, dtype=torch.uint8)
        return base.cpu().clone() if base.device.type == "cpu" else base.cpu()

    def _share(self, t: torch.Tensor, slot: TensorSlot, earlier: int) -> tuple[torch.Tensor, torch.Tensor]:
        other = self._arguments[earlier]
        if other.slot.dtype != slot.dtype or _bit(other.tensor) != _bit(t):
            raise NotStorable(f"{slot.name} has the storage of {other.slot.name}, but another dtype or bit")
        self._shared.append((slot.index, earlier, int(t.storage_offset())))
        return other.base, other.before


def check_storable(t: torch.Tensor, name: str, device: torch.device) -> None:
    """Raise NotStorable unless the tensor is a plain strided tensor on the device or on CPU."""
    if t.layout is not torch.strided or t.is_quantized or t.is_nested or has_no_memory(t):
        raise NotStorable(f"{name} is not a strided tensor")
    if t.device.type not in (device.type, "cpu"):
        raise NotStorable(f"{name} is on {t.device}")
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise NotStorable(f"{name} is a {type(t).__name__}")


def bytes_of(t: torch.Tensor) -> torch.Tensor:
    """Return the tensor's whole storage as bytes, without a copy."""
    plain = t.detach()
    plain = torch.conj(plain) if plain.is_conj() else plain
    plain = neg_view(plain) if plain.is_neg() else plain
    count = t.untyped_storage().nbytes() // t.element_size()
    return plain.as_strided((count,), (1,), 0).view(torch.uint8)


def placement_of(t: torch.Tensor, nbytes: int) -> Placement:
    """Return the placement of a live tensor in its storage of ``nbytes`` bytes."""
    size, stride, offset = tuple(t.shape), tuple(t.stride()), int(t.storage_offset())
    storage = nbytes // t.element_size()
    dense = stride == contiguous_stride(size) and offset == 0 and storage == t.numel() and not _bit(t)
    expanded = any(n > 1 and s == 0 for n, s in zip(size, stride, strict=True))
    layout = "contiguous" if dense else "expanded" if expanded else RECORDED
    return Placement(layout, size, stride, offset, storage, _bit(t))


def _bit(t: torch.Tensor) -> str:
    if t.is_conj() and t.is_neg():
        raise NotStorable("a tensor has both the conj and the neg bit")
    return "conj" if t.is_conj() else "neg" if t.is_neg() else ""


def _special(name: str, value: Any, device: torch.device) -> Arg:
    if isinstance(value, torch.dtype):
        return DtypeArg(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return DeviceArg("" if value.type == device.type else str(value))
    if isinstance(value, torch.Generator):
        return GeneratorArg(value.initial_seed())
    if type(value) not in CONSTANTS:
        raise NotStorable(f"{name} is a {type(value).__name__}")
    return CONSTANTS[type(value)](value)
