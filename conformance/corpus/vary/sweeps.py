"""Samples that evaluate a pointwise op densely: at floats of each pattern of leading bits, and at each pair of bytes.

Functions are computed in pieces, and the stored values and the hard values are in few of these. An op is pointwise here
if torch tags it as pointwise, or if trials show it: many gradients and ``out=`` forms lack the tag.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import resized
from conformance.corpus.vary import arguments
from conformance.corpus.vary.filling import LIMITS, limited, slots_of, with_fills
from conformance.corpus.vary.fills import filled, of_one_shape
from conformance.corpus.vary.hard_values import ARGUMENTS
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

# Numbers of elements, the first of which CPU can compute in time: one for each pattern, or for a quarter of the
# patterns, which are spread as evenly.
ELEMENTS = (1 << 16, 1 << 14)
_FLOATS = ("float32", "float16", "bfloat16")
_BYTES = ("int8", "uint8")
# The last limit is for functions that CPU computes inexactly for very small or very large numbers.
_LIMITS = (*LIMITS, "/moderate")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of a pointwise overload with all floats in one argument, or with all pairs of bytes in two."""
    known = facts(overload.name)
    if overload.is_composite_implicit or known.random:
        return
    tagged = "pointwise" in overload.tags
    schema = schema_of(call_of(overload.name))
    for base in ("float32", "int64"):
        candidates = [s for s in samples if s.base == base and usable(s)]
        if not tagged:
            candidates = _elementwise(candidates, trials, values)
        source = max(candidates, key=_tensors, default=None)
        if source is None:
            continue
        source = of_one_shape(source, values)
        slots = [s for s in source.tensors if _is_free(s) and s.argument not in known.fixed]
        if base == "int64":
            yield from _Swept(source, _BYTES, trials, values, tagged=tagged).of_pairs(slots)
            continue
        for slot in slots[:ARGUMENTS]:
            yield from _Swept(source, _FLOATS, trials, values, tagged=tagged).of_floats(slot, schema)


def _elementwise(samples: Sequence[Sample], trials: Trials, values: HasValues) -> list[Sample]:
    """Return the samples that trials show to be elementwise, in one shape; none if trials refute it for a sample.

    Samples whose results are copies, for example because all elements are past a threshold, are left out if there are
    others.
    """
    alike = [of_one_shape(s, values) for s in samples if _broadcasts(s)]
    found = [trials.is_elementwise(s, s.dtypes[0]) for s in alike]
    shown = [] if False in found else [s for s, elementwise in zip(alike, found, strict=True) if elementwise]
    return [s for s in shown if not trials.copies(s, s.dtypes[0])] or shown


def _broadcasts(sample: Sample) -> bool:
    try:
        torch.broadcast_shapes(*(s.shape for s in sample.tensors if s.pool))
    except RuntimeError:
        return False
    return True


def _tensors(sample: Sample) -> tuple[int, bool]:
    """Return how many arguments have more than one value in the cell's dtype, and whether these have one shape."""
    shapes = [s.shape for s in sample.tensors if s.numel > 1 and _is_free(s)]
    return len(shapes), len(set(shapes)) == 1


def _is_free(slot: TensorSlot) -> bool:
    """Return whether an argument has elements, in the cell's dtype."""
    return bool(slot.pool) and not slot.same_as and slot.dtype is None and slot.numel > 0


class _Swept:
    """The samples that are made from one sample in some dtypes."""

    def __init__(
        self, source: Sample, dtypes: Sequence[str], trials: Trials, values: HasValues, *, tagged: bool
    ) -> None:
        self._source = source
        self._dtypes = tuple(d for d in dtypes if d in source.dtypes)
        self._trials = trials
        self._values = values
        self._tagged = tagged

    def of_floats(self, slot: TensorSlot, schema: Any) -> Iterator[Sample]:
        """Yield samples with all floats in an argument, also with other flags and words, which select a function."""
        large = self._enlarged([slot])
        if large is None:
            return
        yield from self._made(large, {slot.index: "hard/sweep"}, slot.name)
        for other in arguments.others(self._source, schema, pointwise=False):
            if (other.is_flag or isinstance(other.value, str)) and not other.is_default:
                changed = arguments.replaced(large, schema, other)
                (index,) = (s.index for s in changed.tensors if s.name == slot.name)
                yield from self._made(changed, {index: "hard/sweep"}, f"{slot.name}.{other.name}")

    def of_pairs(self, slots: Sequence[TensorSlot]) -> Iterator[Sample]:
        """Yield samples with all pairs of 8-bit integers in two arguments."""
        large = self._enlarged(slots[:2]) if len(slots) > 1 else None
        if large and large.tensors[slots[0].index].numel >= ELEMENTS[0]:
            yield from self._made(large, {s.index: f"hard/byte{i}" for i, s in enumerate(slots[:2])}, "bytes")

    def _enlarged(self, slots: Sequence[TensorSlot]) -> Sample | None:
        """Return the sample with many elements in some arguments; None unless it is elementwise in their shape."""
        for sample in self._large(slots):
            ran = self._trials.run(sample, self._dtypes[0])
            if ran and self._is_elementwise(ran, ran.sample.tensors[slots[0].index].shape):
                return ran.sample
        return None

    def _large(self, slots: Sequence[TensorSlot]) -> Iterator[Sample]:
        """Yield the sample with many elements in some arguments, those with most first."""
        wanted = {s.index for s in slots}
        groups = Maker(self._trials, self._values).groups(self._source, self._dtypes[0]) if self._dtypes else []
        for elements in ELEMENTS:
            for group in groups:
                if wanted <= slots_of(group):
                    per_index = min(s.numel // max(group.size, 1) for s in slots)
                    change = dict.fromkeys(group.places, math.ceil(elements / max(per_index, 1)))
                    yield from filled(self._source, resized(self._source, change), change, self._values)

    def _is_elementwise(self, ran: Ran, shape: tuple[int, ...]) -> bool:
        if any(of_result != shape for of_result in ran.shapes):
            return False
        return self._tagged or self._trials.is_elementwise(ran.sample, self._dtypes[0]) is True

    def _made(self, large: Sample, kinds: dict[int, str], name: str) -> Iterator[Sample]:
        """Yield a sample for each limit that some dtypes need."""

        def limit_of(dtype: str) -> str | None:
            return next((limit for limit in _LIMITS if self._suits(with_fills(large, kinds, limit), dtype)), None)

        yield from limited(large, kinds, self._dtypes, limit_of, f"{self._source.name}.sweep={name}")

    def _suits(self, sample: Sample, dtype: str) -> bool:
        ran = self._trials.run(sample, dtype) is not None and not self._trials.is_inexact(sample, dtype)
        return ran and (self._tagged or not self._trials.copies(sample, dtype))
