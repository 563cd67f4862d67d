"""Samples whose lists of tensors have an empty tensor beside others, and lists of one empty tensor.

A kernel that takes a whole list launches its last chunk behind the last tensor, and its table of offsets may leave out
empty ones: where one tensor is empty, another one is not written, or from the wrong place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_empty_outputs, with_tensors
from conformance.corpus.vary.longer import longer
from conformance.corpus.vary.sizes import AXIS, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

LENGTH = 5
# The elements of which one is empty, by name: the first that has a dimension.
POSITIONS = {"first": (0,), "middle": (2, 1, 3), "last": (4,)}


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with an empty tensor in each list of tensors; none if it is composite."""
    if overload.is_composite_implicit:
        return
    maker = Maker(trials, values)
    for source in sources(samples, values):
        turns = Turns(source)
        for sample, name in longer(source, (LENGTH,)):
            for word, positions in POSITIONS.items():
                yield from turns.counted(_emptied(maker, source, sample, positions, f"{name}.empty={word}", turns))
        for sample, name in longer(source, (1,)):
            yield from turns.counted(_emptied(maker, source, sample, (0,), f"{name}.empty=all", turns))


def _emptied(
    maker: Maker, source: Sample, sample: Sample, positions: Sequence[int], name: str, turns: Turns
) -> Iterator[Sample]:
    """Yield the sample with the tensors at one of the positions in its lists empty, if it runs on CPU.

    Which dimension may be empty depends on the op: ``cat`` takes an empty one only where it joins.
    """
    at = ([s for s in sample.tensors if s.pool and s.name == f"{s.argument}[{n}]" and s.shape] for n in positions)
    slots = next(filter(None, at), [])
    of_each = _of_each(source, sample)
    for dim in range(max((len(s.shape) for s in slots), default=0)):
        empty = of_each | {s.index: _without_elements(s, dim) for s in slots}
        found = with_tensors(sample, [empty.get(s.index, s) for s in sample.tensors])
        made = list(maker.called(source, with_empty_outputs(found, found.tensors), name, turns.dtypes(), AXIS))
        if made:
            yield from made
            return


def _without_elements(slot: TensorSlot, dim: int) -> TensorSlot:
    """Return the slot with no element along a dimension, or along its last one if it has fewer."""
    dim = min(dim, len(slot.shape) - 1)
    return replace(slot, shape=(*slot.shape[:dim], 0, *slot.shape[dim + 1 :]))


def _of_each(source: Sample, sample: Sample) -> dict[int, TensorSlot]:
    """Return the vectors with an element for each tensor of a list, as long as the lists of ``sample``, by index."""
    before, now = ({s.name for s in one.tensors if s.name != s.argument} for one in (source, sample))
    lists = max(len({s.argument for s in sample.tensors if s.name != s.argument}), 1)
    vectors = (s for s in sample.tensors if s.name == s.argument and s.pool)
    return {s.index: replace(s, shape=(len(now) // lists,)) for s in vectors if s.shape == (len(before) // lists,)}
