"""Conversion of stored values to a cell's dtype. It gives the same bits on every torch version and machine."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping

import torch

from conformance.corpus import fills
from conformance.corpus.model import TensorSlot

# The pool of each dtype. Recorded values are float32, int64, bool and complex64, and float64 for arguments with that
# fixed dtype.
POOL_OF_KIND = {"float": "float32", "int": "int64", "bool": "bool", "complex": "complex64"}

# NaN in each 8-bit float format, since the result of a conversion is not specified.
_FLOAT8_NAN = {
    "float8_e4m3fn": 0x7F,
    "float8_e5m2": 0x7F,
    "float8_e4m3fnuz": 0x80,
    "float8_e5m2fnuz": 0x80,
    "float8_e8m0fnu": 0xFF,
}


def kind_of(dtype: str) -> str:
    """Return the kind of a dtype: ``float``, ``int``, ``bool`` or ``complex``."""
    if dtype.startswith(("float", "bfloat")):
        return "float"
    if dtype.startswith("complex"):
        return "complex"
    return "bool" if dtype == "bool" else "int"


def holds(dtype: str, value: object) -> bool:
    """Return whether an integer dtype has a number, truncated; True for other dtypes and for other values."""
    if kind_of(dtype) != "int" or not isinstance(value, (int, float)):
        return True
    info = torch.iinfo(getattr(torch, dtype))
    return math.isfinite(value) and info.min <= int(value) <= info.max


#: The size of the cache of generated values, in bytes. It is larger than the values of any one overload's samples, so
#: that all cells of an overload share them.
_KEPT_BYTES = 32 << 20


class Values:
    """The pools of a corpus, one flat tensor for each stored dtype. They give the values of slots."""

    def __init__(self, pools: Mapping[str, torch.Tensor]) -> None:
        self._pools = pools
        self._cache: dict[tuple[str, int, int, str], torch.Tensor] = {}
        self._made: dict[tuple[str, str, int, int, int, int, str], torch.Tensor] = {}
        self._made_bytes = 0

    def value(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        """Return a contiguous CPU tensor of ``slot.shape`` for a cell of ``dtype``. Clone it before writing to it.

        Raises ValueError for a slot without values (``out=`` arguments), or outside its pool.
        """
        if not slot.pool:
            raise ValueError(f"argument {slot.name} has no values, because it is only written")
        numel = slot.numel
        if slot.fill:
            return self._generated(slot, dtype).view(slot.shape)
        key = (slot.pool, slot.start, numel, slot.dtype or dtype)
        flat = self._cache.get(key)
        if flat is None:
            flat = self._cache[key] = convert(self._range(slot, numel), key[3])
        return flat.view(slot.shape)

    def _generated(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        target, seed = slot.dtype or dtype, zlib.crc32(slot.name.encode()) + slot.start
        is_hard = slot.fill.startswith("hard")
        key = (slot.fill, slot.pool, slot.start, slot.source, slot.numel, seed, target if is_hard else "")
        made = self._made.get(key)
        if made is None:
            stored = self._range(slot, slot.source)
            if is_hard:
                made = fills.from_hard(slot.fill, convert(stored, target), slot.numel, target, seed)
            else:
                made = fills.from_stored(slot.fill, stored, slot.numel, seed)
            self._keep(key, made)
        return made if is_hard else convert(made, target)

    def _keep(self, key: tuple[str, str, int, int, int, int, str], made: torch.Tensor) -> None:
        size = made.numel() * made.element_size()
        if self._made_bytes + size > _KEPT_BYTES:
            self._made.clear()
            self._made_bytes = 0
        if size <= _KEPT_BYTES:
            self._made[key] = made
            self._made_bytes += size

    def _range(self, slot: TensorSlot, numel: int) -> torch.Tensor:
        pool = self._pools.get(slot.pool)
        if pool is None or slot.start + numel > pool.numel():
            raise ValueError(
                f"argument {slot.name} wants elements {slot.start}..{slot.start + numel} of pool {slot.pool!r}, which "
                f"has {0 if pool is None else pool.numel()}: index and values of the corpus do not belong together"
            )
        return pool[slot.start : slot.start + numel]


def convert(flat: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return stored values in another dtype. Floats round to nearest even, and integers are clamped.

    For an unsigned dtype, negative numbers become positive first. A bool is true if the number, or its real part, is
    positive, because hardly any number is 0.
    """
    target = getattr(torch, dtype)
    if flat.dtype == target:
        return flat.clone()
    if target == torch.bool:
        return (flat.real if flat.is_complex() else flat) > 0
    if kind_of(dtype) == "int":
        return _to_int(flat, target)
    if dtype in _FLOAT8_NAN:
        return _to_float8(flat, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that complex32 is experimental
        converted = flat.to(target)
    if converted.is_complex() and flat.is_complex():
        _one_nan(torch.view_as_real(flat), torch.view_as_real(converted))
    elif converted.is_floating_point():
        _one_nan(flat, converted)
    return converted


def _one_nan(source: torch.Tensor, converted: torch.Tensor) -> None:
    """Replace all NaNs by one bit pattern, since a conversion's NaN depends on the machine's vector instructions."""
    if source.sum().isfinite():  # no NaN is among them; a sum takes a twentieth of the time of isnan()
        return
    converted.masked_fill_(source.isnan(), float("nan"))


def _to_int(flat: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    info = torch.iinfo(target)
    wide = flat.to(torch.int64)
    top = min(info.max, 2**63 - 1)
    if info.min == 0:
        return wide.clamp(-(2**63) + 1, 2**63 - 1).abs().clamp(0, top).to(target)
    return wide.clamp(info.min, top).to(target)


def _to_float8(flat: torch.Tensor, dtype: str) -> torch.Tensor:
    wide = flat.to(torch.float32)
    if dtype == "float8_e8m0fnu":  # powers of two only: no sign, no zero
        wide = wide.abs().clamp(min=2.0**-126)
    limit = float(torch.finfo(getattr(torch, dtype)).max)
    nan = wide.isnan()
    converted = wide.clamp(-limit, limit).to(getattr(torch, dtype))
    converted.view(torch.uint8).masked_fill_(nan, _FLOAT8_NAN[dtype])
    return converted
