"""Samples in which every other image of a batch, or row of a matrix, is thousands of times larger than the rest.

Recorded images have similar magnitudes. A kernel that scales a whole batch by its largest element, for example to
compute in integers with one exponent, loses the small images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_tensors
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources, usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload
from conformance.ops import facts

AXIS = "values"

_BASE, _HALVES = "float32", ("bfloat16", "float16")
_TENSORS = 2  # of a sample, one after the other


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples with images of several magnitudes.

    There are none for an op that is pointwise, exact, random, or composite on every device. There are none either for
    an op whose CPU kernel may leave a strided argument, since these samples also run with strided arguments.
    """
    known = facts(overload.name)
    if overload.is_composite_implicit or "pointwise" in overload.tags:
        return
    if known.random or known.tolerance.exact or known.overruns:
        return
    rank = 3 if known.tolerance.normwise else 2  # a matrix to solve would be singular with scaled rows
    maker = Maker(trials, values)
    floating = [s for s in samples if usable(s) and s.base == _BASE and _of_images(s, rank)]
    for source in sources(floating, values):
        for slot in _of_images(source, rank)[:_TENSORS]:
            fill = f"scaled/{slot.numel // slot.shape[0]}"
            slots = [replace(s, fill=fill, source=s.numel) if s == slot else s for s in source.tensors]
            name = f"{slot.name}.magnitudes"
            yield from maker.called(source, with_tensors(source, slots), name, _dtypes(source), AXIS)


def _of_images(sample: Sample, rank: int) -> list[TensorSlot]:
    """Return the float tensors that may take any values and have several images; none in a list."""
    fixed = facts(sample.overload).fixed
    free = [s for s in sample.tensors if s.pool and s.dtype is None and s.name == s.argument not in fixed]
    return [s for s in free if not s.same_as and len(s.shape) >= rank and s.shape[0] > 1 and s.numel]


def _dtypes(source: Sample) -> tuple[str, ...]:
    """Return the first dtype, and those of half precision."""
    return (Turns(source).first, *(d for d in _HALVES if d in source.dtypes))
