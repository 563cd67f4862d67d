"""Samples in which unequal sizes grow by the same number, such as the sizes before and after a padding.

`sizes` changes only equal sizes together. The gradient of a padded row is longer than the row, and both must grow by
the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, Place, extents, label
from conformance.corpus.vary.sizes import LARGE, Group, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

# The sizes to grow to: past a vector, past a block, and past 65,535 blocks, by one and by several thousand.
SIZES = (33, 1025, 65_537, 70_001)
_PROBES = (1, 6)  # the numbers by which sizes grow in a trial


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload in which several sizes grow by the same number; none if it is composite."""
    if overload.is_composite_implicit:
        return
    for source in sources(samples, values):
        if _of_unequal_sizes(source):
            yield from _grown(source, Maker(trials, values))


def _grown(source: Sample, maker: Maker) -> Iterator[Sample]:
    turns = Turns(source)
    free = maker.groups(source, turns.first)
    taken = {place for group in free for place in group.places}
    for place, n in extents(source):
        together = _across(source, place)
        if n < 2 or place in taken or len({size for _, size in together}) < 2:
            continue
        taken |= {other for other, _ in together}
        if all(any(maker.made(source, _larger(together, by), "", (turns.first,))) for by in _PROBES):
            for wanted in SIZES:
                change = (_of_one(free) if wanted > LARGE else {}) | _larger(together, wanted - n)
                name = f"{label(source, [place])}={wanted}.apart"
                yield from turns.counted(maker.made(source, change, name, turns.dtypes()))


def _larger(sizes: Sequence[tuple[Place, int]], by: int) -> dict[Place, int]:
    return {place: size + by for place, size in sizes}


def _of_one(groups: Sequence[Group]) -> dict[Place, int]:
    return {place: 1 for group in groups for place in group.places}


def _across(source: Sample, place: Place) -> list[tuple[Place, int]]:
    """Return the sizes of the place's dimension in all tensors of the same rank."""
    assert isinstance(place, Extent)
    rank = len(source.tensors[place.slot].shape)
    slots = [s for s in source.tensors if s.pool and not s.same_as and len(s.shape) == rank]
    return [(Extent(s.index, place.dim), s.shape[place.dim]) for s in slots]


def _of_unequal_sizes(source: Sample) -> bool:
    """Return whether two tensors of the same rank have different sizes in a dimension, neither of which is 1."""
    shapes = [s.shape for s in source.tensors if s.pool and not s.same_as]
    pairs = ((a, b) for a in shapes for b in shapes if len(a) == len(b))
    return any(m != n and min(m, n) > 1 for a, b in pairs for m, n in zip(a, b, strict=True))
