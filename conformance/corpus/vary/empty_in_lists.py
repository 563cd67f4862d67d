"""Samples whose lists of tensors have an empty tensor beside others, and lists of one empty tensor.

A kernel for a whole list launches its last chunk after the last tensor, and its table of offsets may omit empty
tensors. If one tensor is empty, a wrong kernel does not write another one, or writes it from the wrong place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_empty_outputs, with_tensors
from conformance.corpus.vary.longer import longer
from conformance.corpus.vary.sizes import AXIS, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

LENGTH = 5
# The positions to try for an empty tensor, by name. The first tensor there that has a dimension becomes empty.
POSITIONS = {"first": (0,), "middle": (2, 1, 3), "last": (4,)}
# A kernel launches once for each full table of this many tensors, or of a divisor of this number, and for the rest.
TABLES = 24
# By name, lengths of lists with the positions of their empty tensors. In "last", the last tensor follows full tables
# directly. In "both", the first tensor after full tables is empty, and so is the last tensor of the partly filled table
# there. The first length is used whose tensors at these positions have a dimension.
BEHIND_TABLES = {
    "last": ((TABLES + 1, (TABLES,)),),
    "both": ((TABLES + 3, (TABLES, TABLES + 2)), (TABLES + 7, (TABLES, TABLES + 6))),
}


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with an empty tensor in each list of tensors; none if it is composite."""
    if overload.is_composite_implicit:
        return
    maker = Maker(trials, values)
    of_many = False
    result = overload.schema.rpartition(" -> ")[2]
    gives_a_tensor = result.startswith("Tensor") and "[]" not in result
    for source in sources(samples, values):
        turns = Turns(source)
        for sample, name in longer(source, (LENGTH,)):
            for word, positions in POSITIONS.items():
                tried = ((n,) for n in positions)
                yield from turns.counted(_emptied(maker, source, sample, tried, f"{name}.empty={word}", turns.dtypes()))
                if gives_a_tensor:
                    yield from _vector(maker, source, sample, positions[0], f"{name}.vector={word}", turns.dtypes())
        for sample, name in longer(source, (1,)):
            yield from turns.counted(_emptied(maker, source, sample, [(0,)], f"{name}.empty=all", turns.dtypes()))
        found = [] if of_many else list(_behind_tables(maker, source, turns.dtypes()[:1]))
        of_many = of_many or bool(found)
        yield from found


def _behind_tables(maker: Maker, source: Sample, dtypes: tuple[str, ...]) -> Iterator[Sample]:
    """Yield the sample with lists in which an empty tensor follows the full tables of a kernel."""
    for word, lists in BEHIND_TABLES.items():
        made = (
            list(_emptied(maker, source, sample, [positions], f"{name}.empty={word}", dtypes))
            for length, positions in lists
            for sample, name in longer(source, (length,))
        )
        yield from next(filter(None, made), [])


def _emptied(
    maker: Maker,
    source: Sample,
    sample: Sample,
    tried: Iterable[Collection[int]],
    name: str,
    dtypes: tuple[str, ...],
) -> Iterator[Sample]:
    """Yield the sample with empty tensors at the first usable positions of its lists, if it runs on CPU.

    The dimension that may be empty depends on the op: ``cat`` accepts an empty dimension only where it joins. Tensors
    without dimensions do not change.
    """
    slots = next(filter(None, (_at(sample, positions) for positions in tried)), [])
    for dim, of_each in product(range(max((len(s.shape) for s in slots), default=0)), _of_each(source, sample)):
        empty = of_each | {s.index: _without_elements(s, dim) for s in slots}
        found = with_tensors(sample, [empty.get(s.index, s) for s in sample.tensors])
        made = list(maker.called(source, with_empty_outputs(found, found.tensors), name, dtypes, AXIS))
        if made:
            yield from made
            return


def _vector(
    maker: Maker, source: Sample, sample: Sample, position: int, name: str, dtypes: tuple[str, ...]
) -> Iterator[Sample]:
    """Yield the sample with an empty vector at a position of its lists, in place of a tensor of more dimensions.

    ``cat`` accepts an empty vector beside tensors of any rank, for compatibility with old programs.
    """
    vectors = {s.index: replace(s, shape=(0,)) for s in _at(sample, (position,)) if len(s.shape) > 1}
    if vectors:
        found = with_tensors(sample, [vectors.get(s.index, s) for s in sample.tensors])
        yield from maker.called(source, with_empty_outputs(found, found.tensors), name, dtypes, AXIS)


def _at(sample: Sample, positions: Collection[int]) -> list[TensorSlot]:
    """Return the tensors with dimensions at these positions in lists; none if a position has no such tensor."""
    names = {f"[{n}]" for n in positions}
    found = [s for s in sample.tensors if s.pool and s.shape and s.name.removeprefix(s.argument) in names]
    return found if {s.name.removeprefix(s.argument) for s in found} == names else []


def _without_elements(slot: TensorSlot, dim: int) -> TensorSlot:
    """Return the slot with size 0 in a dimension, or in its last dimension if it has fewer dimensions."""
    dim = min(dim, len(slot.shape) - 1)
    return replace(slot, shape=(*slot.shape[:dim], 0, *slot.shape[dim + 1 :]))


def _of_each(source: Sample, sample: Sample) -> list[dict[int, TensorSlot]]:
    """Return the vectors with one element per tensor of a list, by index, resized to the lists of ``sample``.

    If the lists of ``source`` have one tensor, a vector of one element may be another argument. Then the second result
    is to resize no vector.
    """
    before, now = ({s.name for s in one.tensors if s.name != s.argument} for one in (source, sample))
    lists = max(len({s.argument for s in sample.tensors if s.name != s.argument}), 1)
    vectors = (s for s in sample.tensors if s.name == s.argument and s.pool)
    length = len(before) // lists
    found = {s.index: replace(s, shape=(len(now) // lists,)) for s in vectors if s.shape == (length,)}
    return [found, {}] if found and length == 1 else [found]
