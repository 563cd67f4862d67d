"""Samples larger than all others, for native kernels: a long dimension beside whole tiles, and millions of elements.

In other samples, a size past 4,096 is combined only with sizes of at most 2, and there are at most 400,000 elements.
Dimensions that are summed over are always among the long ones.
"""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Place, extents, label, resized
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.sources import Turns, sources, sources_of_other_ranks, usable
from conformance.corpus.vary.trial import MOST_SECONDS, Trials
from conformance.inventory import Overload

AXIS = "large"

# Past 2**15, in a dimension; and past a tile of 16, in all others.
LONG, TILE = 33_001, 17
_MOST_LONG = 1_700_000  # elements: those of both factors of a matrix product, or of three arguments of one size
_GROUPS = 3
_HALVES = ("bfloat16", "float16")
# Elements of the largest argument: several rounds of a kernel with persistent blocks; if that takes too long, more than
# 2**20.
MANY, FEWER = 3_100_003, 1_100_003
MOST_ELEMENTS = 7_000_000  # of all arguments
_SECONDS = 0.05
_PART = 8  # a call with this many times fewer elements comes first: a call that takes too long kills a trial
_BESIDE = (33, 3)  # the other sizes of a sample of many elements, the first with which CPU is fast enough
_SOURCES = 2  # samples to vary; more are tried if these give none
_MOST_SOURCES = 5


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples that are long beside whole tiles, unless the op is pointwise, and one of many elements."""
    if overload.is_composite_implicit:
        return
    found_long, found_many = False, False
    pointwise = "pointwise" in overload.tags
    for at, source in enumerate(_varied(samples, values, pointwise=pointwise)):
        turns = Turns(source)
        groups = Maker(trials, values).groups(source, turns.first)
        if not pointwise and (at < _SOURCES or not found_long):
            maker = Maker(trials.within(_MOST_LONG, MOST_SECONDS), values)
            dtypes = (turns.first, *_half(source, turns.first))
            for sample in _all_long(maker, source, groups, dtypes):
                found_long = True
                yield sample
        if groups and not found_many:
            for sample in _many(trials, values, source, groups, turns.first):
                found_many = True
                yield sample


def _varied(samples: Sequence[Sample], values: HasValues, *, pointwise: bool) -> list[Sample]:
    """Return the samples to vary: the first one, the one with the most sizes, and more in case these give none.

    For a pointwise op, the sample with the most tensors of one shape precedes these.
    """
    first = sources(samples, values)[:1]
    alike = [s for s in samples if usable(s) and first and s.base == first[0].base]
    others = [*_of_many_sizes(alike), *sources(alike, values), *sources_of_other_ranks(alike, values)]
    return list(dict.fromkeys([*(_of_one_shape(alike) if pointwise else []), *first, *others]))[:_MOST_SOURCES]


def _of_many_sizes(samples: Sequence[Sample]) -> list[Sample]:
    """Return the sample with the most different sizes. Few of these change together only because they are equal."""
    return sorted(samples, key=lambda s: (-len({n for _, n in extents(s) if n > 1}), s.name))[:1]


def _of_one_shape(samples: Sequence[Sample]) -> list[Sample]:
    """Return the sample with the most tensors of one shape: kernels have a separate loop for these."""

    def key(sample: Sample) -> tuple[int, int, str]:
        shapes = [s.shape for s in sample.tensors if s.numel > 1]
        return (-max(map(shapes.count, shapes), default=0), len(set(shapes)), sample.name)

    return sorted(samples, key=key)[:1]


def _half(source: Sample, first: str) -> tuple[str, ...]:
    """Return a half dtype, which depends on the sample's name."""
    halves = [d for d in _HALVES if d in source.dtypes and d != first]
    return (halves[zlib.crc32(source.name.encode()) % len(halves)],) if halves else ()


def _all_long(maker: Maker, source: Sample, groups: Sequence[Group], dtypes: tuple[str, ...]) -> Iterator[Sample]:
    """Yield the sample with each of the first groups long, and with each group long that is summed over.

    A kernel sums in a loop inside a tile. If not all other groups can be tiles beside a long sum, all but one are
    tiles.
    """
    for at, group in enumerate(groups):
        summed = maker.is_summed(source, group, dtypes[0])
        if at >= _GROUPS and not summed:
            continue
        others = [g for g in groups if g != group]
        single = [(n, [g]) for n in (2, 1) for g in others]
        all_but_one = [(1, [g for g in others if g != one]) for one in others] if len(others) > 1 else []
        name = f"{label(source, group.places)}={LONG}x{TILE}"
        found = list(_long(maker, source, group, others, [(2, others)], name, dtypes))
        if summed and not found:
            found = list(_long(maker, source, group, others, all_but_one, f"{name}.summed", dtypes))
        if not found or (at < _GROUPS and found[0].name.endswith(".summed")):
            found += _long(maker, source, group, others, single, name, dtypes)
        yield from found


def _long(
    maker: Maker,
    source: Sample,
    group: Group,
    others: Sequence[Group],
    beside: Iterable[tuple[int, Sequence[Group]]],
    name: str,
    dtypes: tuple[str, ...],
) -> Iterator[Sample]:
    """Yield the sample with one long group, beside the first other sizes that CPU accepts.

    ``beside``: the largest size of each other group, and the groups that are tiles instead.
    """
    for most, tiled in beside:
        change: dict[Place, int] = {p: TILE if g in tiled else min(g.size, most) for g in others for p in g.places}
        change |= dict.fromkeys(group.places, LONG)
        found = [replace(s, axis=AXIS) for s in maker.made(source, change, name, dtypes)] if tiled else []
        if found:
            yield from found
            return


def _many(trials: Trials, values: HasValues, source: Sample, groups: Sequence[Group], dtype: str) -> Iterator[Sample]:
    """Yield the sample with many elements, in its first or in its last dimension."""
    few = Maker(trials.within(MOST_ELEMENTS // _PART, _SECONDS / _PART), values)
    many = Maker(trials.within(MOST_ELEMENTS, _SECONDS), values)
    turn = zlib.crc32(source.overload.encode()) % 2
    ends = list(dict.fromkeys([groups[-turn], groups[turn - 1]]))
    for most, group, beside in product((MANY, FEWER), ends, _BESIDE if len(groups) > 1 else _BESIDE[:1]):
        change: dict[Place, int] = {p: beside for g in groups if g != group for p in g.places}
        n = _for_many(source, group, change, most)
        name = f"{label(source, group.places)}={n}x{beside}"
        tried = change | dict.fromkeys(group.places, n // _PART)
        if n and any(few.made(source, tried, name, (dtype,))):
            found = [*many.made(source, change | dict.fromkeys(group.places, n), name, (dtype,))]
            if found:
                yield replace(found[0], axis=AXIS)
                return


def _for_many(source: Sample, group: Group, beside: dict[Place, int], most: int) -> int:
    """Return the odd size of a group with which the largest argument has ``most`` elements; 0 if none does.

    An argument may have several dimensions of this size. All arguments together have at most :data:`MOST_ELEMENTS`. If
    no tensor has dimensions, the size of the result is one of the numbers.
    """
    if not any(extents(source)):
        return most

    def numels(n: int) -> list[int]:
        return [s.numel for s in resized(source, beside | dict.fromkeys(group.places, n)).tensors]

    if max(numels(2), default=0) <= max(numels(1), default=0):
        return 0
    n = bisect.bisect_left(range(most), most, key=lambda n: max(numels(n))) | 1
    if sum(numels(n)) > MOST_ELEMENTS:
        n = bisect.bisect_left(range(n), MOST_ELEMENTS, key=lambda n: sum(numels(n))) - 1
    return n - 1 + n % 2
