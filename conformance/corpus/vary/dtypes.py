"""Samples in dtypes that CPU accepts but no recorded sample has: OpInfo does not list all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import BASES, Sample
from conformance.corpus.places import with_empty_outputs
from conformance.corpus.values import kind_of
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

AXIS = "variants"

_DTYPES = (
    "float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8",
    "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_SOURCES = 4  # samples to try in other dtypes: this many of several elements, and as many of one


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload in dtypes that none of ``samples`` has. They have no axis."""
    del values
    if overload.is_composite_implicit:
        return
    there = {dtype for s in samples if not s.raises for dtype in s.dtypes}
    filled = [s for s in samples if usable(s) and _is_filled(s)]
    for base in BASES:
        missing = [d for d in _DTYPES if kind_of(d) == kind_of(base) and d not in there]
        near = sorted(filled, key=lambda s: s.base != base)
        large = [s for s in near if not _is_small(s)]
        small = [s for s in near if _is_small(s)]
        for source in (*large[:_SOURCES], *small[:_SOURCES]):
            sample = _in_base(source, base)
            ran = tuple(d for d in missing if trials.run(sample, d))
            if ran:
                yield replace(sample, name=f"{source.name}.{base}", dtypes=ran)
                missing = [d for d in missing if d not in ran]


def _is_filled(sample: Sample) -> bool:
    """Return whether a sample has values in the cell's dtype, and each of its tensors with values has elements."""
    slots = [s for s in sample.tensors if s.pool]
    return any(s.dtype is None for s in slots) and all(s.numel for s in slots)


def _is_small(sample: Sample) -> bool:
    """Return whether a tensor in the cell's dtype has one element or none: other sizes cannot be made from it."""
    return any(s.numel < 2 for s in sample.tensors if s.pool and s.dtype is None)


def _in_base(source: Sample, base: str) -> Sample:
    """Return the sample in another base. Floats that are made from integers are not whole numbers."""
    if source.base == base:
        return source
    halved = kind_of(base) in ("float", "complex") and kind_of(source.base) in ("int", "bool")
    slots = [
        replace(s, fill="halves", source=s.numel) if halved and s.pool and s.dtype is None and not s.same_as else s
        for s in source.tensors
    ]
    return with_empty_outputs(replace(source, base=base), slots)
