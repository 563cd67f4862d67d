"""Variants of ``out=``: empty, of another shape, of a wider dtype, and of a dtype that the result cannot be cast to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from conformance.corpus.drafts import with_slots
from conformance.corpus.model import Sample, SampleName, TensorSlot

WIDER = {"float32": "float64", "int64": "float64", "complex64": "complex128", "bool": "int64"}
UNSAFE = {"float32": "int64", "complex64": "float32"}


def vary_outs(samples: Mapping[str, Sequence[Sample]], thoroughly: frozenset[str]) -> Iterator[Sample]:
    """Yield samples with an empty ``out``; for overloads in ``thoroughly``, also the other variants."""
    for overload, rows in samples.items():
        for base in ("float32", "int64", "complex64", "bool"):
            source = next((s for s in rows if s.base == base and not s.raises and _outs(s)), None)
            if source is not None:
                yield _variant(source, "empty_out", source.dtypes, shape=(0,))
                if overload in thoroughly:
                    yield from _thorough(source)
                break


def _thorough(source: Sample) -> Iterator[Sample]:
    dtypes = source.dtypes[:1]
    yield _variant(source, "larger_out", dtypes, one_more=True)
    if all(s.dtype is None for s in _outs(source)):
        yield _variant(source, "wider_out", dtypes, dtype=WIDER[source.base])
        if source.base in UNSAFE:
            yield replace(_variant(source, "unsafe_out", dtypes, dtype=UNSAFE[source.base]), raises=True)


def _outs(sample: Sample) -> list[TensorSlot]:
    return [s for s in sample.tensors if not s.pool]


def _variant(
    source: Sample,
    label: str,
    dtypes: tuple[str, ...],
    shape: tuple[int, ...] | None = None,
    dtype: str | None = None,
    one_more: bool = False,
) -> Sample:
    def change(slot: TensorSlot) -> TensorSlot:
        if slot.pool:
            return slot
        larger = (2, *slot.shape) if one_more else slot.shape
        return replace(slot, shape=larger if shape is None else shape, dtype=dtype or slot.dtype)

    name = SampleName.parse(source.name)
    changed = with_slots(source, tuple(change(s) for s in source.tensors))
    return replace(changed, name=str(replace(name, label=f"{name.label}.{label}")), dtypes=dtypes)
