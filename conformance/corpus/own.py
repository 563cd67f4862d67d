"""The samples that ``conformance/ops`` describes, created with values in every described base."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from conformance.corpus.drafts import SEED, Drafter
from conformance.corpus.model import Sample
from conformance.corpus.pools import PoolBuilder
from conformance.inventory import call_of
from conformance.ops.family import Device, Dtype, Family, Own, Seeded, T
from conformance.torch_versions import schema_of


def realize(samples: Iterable[tuple[Family, Own]], pools: PoolBuilder) -> list[Sample]:
    """Return one sample for each base. Raises LookupError or NotStorable for an invalid description."""
    return [_realize(family, described, base, pools) for family, described in samples for base in described.bases]


def _realize(family: Family, described: Own, base: str, pools: PoolBuilder) -> Sample:
    schema = schema_of(call_of(described.overload))
    generator = torch.Generator().manual_seed(SEED)
    fixed: set[str] = set()

    def live(value: Any, name: str) -> Any:
        if isinstance(value, T):
            if value.dtype is not None:
                fixed.add(name)
            return _tensor(value, base, generator)
        if isinstance(value, tuple):
            return [live(v, name) for v in value]
        return _plain(value, base)

    names = [a.name for a in schema.arguments]
    args = [live(v, n) for n, v in zip(names, described.args, strict=False)]
    kwargs = {k: live(v, k) for k, v in described.kwargs.items()}
    origin = f"own.{family.name}.{described.label}"
    sample = Drafter(pools, base, frozenset(fixed)).draft(described.overload, schema, args, kwargs, origin)
    return replace(sample, raises=described.raises)


def _plain(value: Any, base: str) -> Any:
    if isinstance(value, Dtype):
        return getattr(torch, value.name or base)
    if isinstance(value, Device):
        return torch.device("cpu")
    return torch.Generator() if isinstance(value, Seeded) else value


def _tensor(described: T, base: str, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, described.dtype or base)
    if isinstance(described.fill, tuple):
        return torch.tensor(described.fill).to(dtype).reshape(described.shape)
    return _filled(described.fill, described.shape, dtype, generator)


def _filled(fill: str, shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with the values that ``fill`` names. Raises ValueError for an unknown name."""
    if fill in _FIXED:
        return _FIXED[fill](shape).to(dtype)
    if fill == "normal":
        return _normal(shape, dtype, generator)
    kind, _, high = fill.partition(":")
    uniform = torch.rand(shape, generator=generator)
    if kind == "index":
        return (uniform * int(high)).to(torch.int64).to(dtype)
    if fill not in _DRAWN:
        raise ValueError(f"unknown fill {fill!r}")
    return _DRAWN[fill](uniform, dtype)


def _positive(uniform: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (0.5 + 1.5 * uniform).to(dtype) if dtype.is_floating_point else 1 + (uniform * 9).to(dtype)


_FIXED: dict[str, Callable[[tuple[int, ...]], torch.Tensor]] = {
    "zeros": torch.zeros,
    "undefined": torch.zeros,
    "ones": torch.ones,
    "arange": lambda shape: torch.arange(torch.Size(shape).numel()).remainder(101).reshape(shape),
}
# Functions of uniform values in [0, 1).
_DRAWN: dict[str, Callable[[torch.Tensor, torch.dtype], torch.Tensor]] = {
    "mask": lambda uniform, dtype: (uniform < 0.5).to(dtype),
    "uniform": lambda uniform, dtype: uniform.to(dtype),
    "positive": _positive,
}


def _normal(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Return normally distributed values: integers from -9 to 9 for integer dtypes, both values for bool."""
    if dtype.is_complex:
        return torch.complex(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)).to(dtype)
    values = torch.randn(shape, generator=generator)
    if dtype == torch.bool:
        return values > 0
    return values.to(dtype) if dtype.is_floating_point else (values * 4).clamp(-9, 9).to(dtype)
