"""Samples of the configurations that ``conformance/ops`` describes, with values computed from positions.

Changing one argument of a recorded sample is not enough for an argument that must agree with several shapes, such as
the number of groups of a convolution. Composite overloads have configurations too: a backend's own kernel for a
composite receives all of its sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from conformance import ops
from conformance.corpus.calls import HasValues
from conformance.corpus.drafts import Drafter
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_tensors
from conformance.corpus.pools import PoolBuilder
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops.family import Family, Own, T
from conformance.torch_versions import schema_of

AXIS = "variants"

_BASE = "float32"
_DTYPES = ("float32", "float64", "float16", "bfloat16")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, _: HasValues) -> Iterator[Sample]:
    """Yield a sample of each configuration of an overload, in the dtypes in which it runs on CPU."""
    stored = _stored(samples)
    if stored is None:
        return
    for family, described in ops.configurations():
        if described.overload == overload.name:
            sample = _drafted(family, described, stored)
            if dtypes := tuple(d for d in _DTYPES if trials.run(sample, d)):
                yield replace(sample, dtypes=dtypes, axis=AXIS)


def _stored(samples: Sequence[Sample]) -> TensorSlot | None:
    """Return the largest slot of recorded floats, or None. It is the source of the fills, which need stored values."""
    slots = [s for sample in samples if usable(sample) and sample.base == _BASE for s in sample.tensors]
    floats = [s for s in slots if s.pool == _BASE and s.dtype is None and s.numel > 1]
    return max(floats, key=lambda s: (s.numel, s.start), default=None)


def _drafted(family: Family, described: Own, stored: TensorSlot) -> Sample:
    """Return the sample. The digest in its name is that of its structure. Raises LookupError or NotStorable."""
    schema = schema_of(call_of(described.overload))
    given = [*zip((a.name for a in schema.arguments), described.args, strict=False), *described.kwargs.items()]
    tensors = {name: value for name, value in given if isinstance(value, T)}
    fixed = frozenset(name for name, value in tensors.items() if value.dtype is not None)
    args = [_empty(value) for value in described.args]
    kwargs = {name: _empty(value) for name, value in described.kwargs.items()}
    origin = f"own.{family.name}.{described.label}"
    sample = Drafter(PoolBuilder(), _BASE, fixed).draft(described.overload, schema, args, kwargs, origin)
    return with_tensors(sample, [_filled(s, tensors[s.name], stored) for s in sample.tensors])


def _empty(value: object) -> object:
    if isinstance(value, T):
        return torch.zeros(value.shape, dtype=getattr(torch, value.dtype or _BASE))
    return list(value) if isinstance(value, tuple) else value


def _filled(slot: TensorSlot, described: T, stored: TensorSlot) -> TensorSlot:
    fill = "uniform" if described.fill == "normal" else str(described.fill)
    return replace(slot, pool=stored.pool, start=stored.start, fill=fill, source=stored.numel, same_as="")
