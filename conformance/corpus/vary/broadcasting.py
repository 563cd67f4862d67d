"""Samples in which one tensor has one batch, or none, beside others that have several.

Not every CPU kernel checks that batches agree: results have to be those for the tensor expanded to all batches.
A kernel that steps through such a tensor with the batches of another one gives the first batch right. Recorded batches
are equal, and sizes that are equal change together. A matrix counts as a batch of rows. One row may be longer than a
tile, as the bias of a layer is.
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
_TENSORS = 3  # of a sample, one after the other
_LEAST_RANK = 2
# Sizes past a tile, of which the first or the second dimension that can change has the larger one.
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
    """Yield the sample with sizes past a tile, one dimension after the other."""
    groups = maker.groups(sample, turns.first)
    for sizes in _LARGE:
        change = {place: n for group, n in zip(groups, sizes, strict=False) for place in group.places}
        spelled = "x".join(map(str, sizes[: len(groups)]))
        yield from turns.counted(maker.made(sample, change, f"{name}.all={spelled}", turns.dtypes()))


def _of_batches(sample: Sample) -> list[TensorSlot]:
    """Return the tensors that are read and have as many batches as another one; of several, all in turns."""
    batched = [s for s in sample.tensors if s.pool and not s.same_as and len(s.shape) >= _LEAST_RANK and s.shape[0] > 1]
    sizes = [s.shape[0] for s in batched]
    return [s for s in batched if not (s.written or s.fill or indexes(s)) and sizes.count(s.shape[0]) > 1]


def _runs(trials: Trials, sample: Sample, dtype: str, usual: Ran) -> bool:
    """Whether a call returns, and results of the usual shapes."""
    ran = trials.run(sample, dtype)
    return ran is not None and ran.shapes == usual.shapes != ()
