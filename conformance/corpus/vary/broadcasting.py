"""Samples in which one tensor has a batch of 1, or no batch dimension, and others have several batches.

A kernel that steps through this tensor with the batches of another tensor is right only for the first batch. Recorded
batches are equal, and equal sizes change together, so other samples do not show this fault. Not every CPU kernel checks
that batches agree: a sample is kept only if its results are those for the tensor expanded to all batches. A matrix
counts as a batch of rows. One row may be longer than a tile, as the bias of a layer is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_empty_outputs
from conformance.corpus.vary.fills import indexes
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources, sources_of_other_ranks, usable
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload

_SOURCES = 3  # samples with batches that are varied
_TENSORS = 3  # of a sample, one at a time
_LEAST_RANK = 2
# Sizes of the dimensions that can change: the first or the second one is past a tile.
_LARGE = ((1031, 5, 3, 2, 2), (5, 1031, 3, 2, 2))


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples whose batches broadcast; none if the op is pointwise, or composite on every device."""
    if overload.is_composite_implicit or "pointwise" in overload.tags:
        return
    maker = Maker(trials, values)
    batched = [s for s in samples if usable(s) and _of_batches(s)]
    for source in [*sources(batched, values), *sources_of_other_ranks(batched, values)][:_SOURCES]:
        yield from _broadcast(maker, trials, source)


def _broadcast(maker: Maker, trials: Trials, source: Sample) -> Iterator[Sample]:
    turns = Turns(source)
    usual = trials.run(source, turns.first)
    if usual is None:
        return
    for slot in _of_batches(source)[:_TENSORS]:
        for name, shape in (("one", (1, *slot.shape[1:])), ("none", slot.shape[1:])):
            # The stored values of the first batch come first.
            slots = (replace(s, shape=shape) if s == slot else s for s in source.tensors)
            sample = with_empty_outputs(source, slots)
            if _runs(trials, sample, turns.first, usual) and trials.broadcasts(
                sample, turns.first, slot.index, slot.shape
            ):
                yield from turns.counted(maker.stored(sample, f"{slot.name}.batch={name}", turns.dtypes()))
                yield from _enlarged(maker, turns, sample, f"{slot.name}.batch={name}")


def _enlarged(maker: Maker, turns: Turns, sample: Sample, name: str) -> Iterator[Sample]:
    """Yield the sample in the sizes of ``_LARGE``, in which one dimension is past a tile."""
    groups = maker.groups(sample, turns.first)
    for sizes in _LARGE:
        change = {place: n for group, n in zip(groups, sizes, strict=False) for place in group.places}
        spelled = "x".join(map(str, sizes[: len(groups)]))
        yield from turns.counted(maker.made(sample, change, f"{name}.all={spelled}", turns.dtypes()))


def _of_batches(sample: Sample) -> list[TensorSlot]:
    """Return the tensors that are only read, are no indices, and have several batches, as many as another tensor."""
    batched = [s for s in sample.tensors if s.pool and not s.same_as and len(s.shape) >= _LEAST_RANK and s.shape[0] > 1]
    sizes = [s.shape[0] for s in batched]
    return [s for s in batched if not (s.written or s.fill or indexes(s)) and sizes.count(s.shape[0]) > 1]


def _runs(trials: Trials, sample: Sample, dtype: str, usual: Ran) -> bool:
    """Return whether a call returns results of the usual shapes."""
    ran = trials.run(sample, dtype)
    return ran is not None and ran.shapes == usual.shapes != ()
