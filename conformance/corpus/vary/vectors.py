"""Samples of one dimension, for overloads that were recorded only with more dimensions, or with none.

Many kernels have a separate path for vectors: the only dimension is both the first and the last one, and has a stride.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample
from conformance.corpus.places import Place, extents, with_empty_outputs
from conformance.corpus.vary.arguments import Other, by_name, names_dimensions, replaced
from conformance.corpus.vary.fills import indexes
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources, usable, with_bools
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "variants"

#: Further sizes of a vector, if elements depend on each other: past a block, and past 65,536.
SIZES = (4099, 65537)


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield vectors for an overload whose samples all have several dimensions, or none."""
    if overload.is_composite_implicit or any(_rank(s) == 1 for s in samples if usable(s)):
        return
    schema = schema_of(call_of(overload.name))
    pointwise = "pointwise" in overload.tags
    maker = Maker(trials, values)
    for source in sources(samples, values) if pointwise else with_bools(samples, values):
        turns = Turns(source)
        for form, (name, vector) in enumerate(_vectors(source, schema)):
            for size in (0,) if pointwise or form else (0, *SIZES):
                whole = f"rank=1{name}" + (f".{size}" if size else "")
                made = maker.made(vector, _sizes(vector, size), whole, turns.of(whole))
                yield from (replace(sample, axis=AXIS) for sample in made)


def _sizes(vector: Sample, size: int) -> dict[Place, int]:
    """Return new sizes of the tensors; 0 keeps their own. Indices keep theirs: there may be any number of them."""
    return {at: size or n for at, n in extents(vector) if not (size and indexes(vector.tensors[at.slot]))}


def _rank(sample: Sample) -> int:
    return max((len(s.shape) for s in sample.tensors if s.pool), default=0)


def _vectors(source: Sample, schema: Any) -> Iterator[tuple[str, Sample]]:
    """Yield the sample with only the last dimension of each tensor, once for each number that names this dimension.

    If no tensor has a dimension, each tensor gets one.
    """
    slots = [replace(s, shape=s.shape[-1:] or (1,) * (not _rank(source))) if s.pool else s for s in source.tensors]
    if _rank(source) and not any(s.numel > 1 for s in slots if s.pool):
        return
    vector = with_empty_outputs(source, slots)
    given = by_name(source, schema)
    formals = [a for a in schema.arguments if names_dimensions(a) and given.get(a.name) is not None]
    for dim in (0, -1) if formals else ():
        sample = vector
        for formal in formals:
            value: Arg = (dim,) if isinstance(given[formal.name], tuple) else dim
            sample = replaced(sample, schema, Other(formal, value))
        yield f".dim={dim}", sample
    if not formals:
        yield "", vector
