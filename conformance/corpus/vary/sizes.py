"""Samples of other sizes. Trials on CPU find the sizes of a sample that can change.

The extents of a sample that must agree are equal, so a size is only tried together with equal sizes. Integers among the
arguments take part (``normalized_shape``, ``split_sizes``).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from conformance import ops
from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import (
    Extent,
    Place,
    extents,
    label,
    places,
    resized,
    with_tensors,
)
from conformance.corpus.values import kind_of
from conformance.corpus.vary.fills import filled, indexes, refilled
from conformance.corpus.vary.longer import longer_or_deeper
from conformance.corpus.vary.sources import OTHER_DTYPES, Turns, sources, with_bools
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "sizes"

# No element, one, past the usual vectors, tiles and blocks, past 65,535 blocks, and full blocks. Every group takes all
# of these.
ALWAYS = (0, 1, 33, 1024, 1025, 4097, 65537)
# The sizes of complex samples, and of bool samples beside others, with which they mostly share their loops.
OF_COMPLEX = (33, 1025, 65537)
OF_BOOLS = (33, 1025, 4097, 65537)
# At the edges of tiles. A group takes one of these, by its name.
EDGES = (
    15, 16, 17, 31, 32, 63, 64, 65, 127, 128, 129, 255, 257, 511, 512, 513, 1023, 2047, 2048, 2049, 4095, 4096, 8191,
)  # fmt: skip
# Sizes of several dimensions at once. The last ones are equal, also past a tile, so that no kernel can tell the
# dimensions apart by their sizes.
TOGETHER = (
    (67, 35, 19, 9, 5), (129, 257, 3, 2, 2), (5, 9, 131, 17, 3), (521, 523, 1, 1, 1), (7, 7, 7, 7, 7),
    (37, 37, 37, 7, 7),
)  # fmt: skip
# Orders of the values of the largest sample, which put a searched value at its end.
ORDERS = ("ascending", "descending")
LARGE = 4000  # beside a size above this one, the other free sizes are at most 2
HALVES = ("bfloat16", "float16")
_MOST_CANDIDATES = 16
# A trial resizes n to 2 * n + 5, which is odd and larger, or to n + 1 if another size is a limit. For example, an index
# that may name no element twice is limited by the size of the indexed tensor.
_PROBES = (2, 5), (1, 1)
GROUPS = {"float32": 5, "int64": 3, "complex64": 2, "bool": 2}  # of sizes of one source


@dataclass(frozen=True, slots=True)
class Group:
    """Sizes that change together."""

    places: tuple[Place, ...]
    size: int


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other sizes; none if it is composite on every device."""
    if overload.is_composite_implicit:
        return
    pointwise = "pointwise" in overload.tags
    maker = Maker(trials, values, pointwise=pointwise)
    varied = sources(samples, values) if pointwise else with_bools(samples, values)
    for source in varied:
        fewer = {"complex64": OF_COMPLEX, "bool": OF_BOOLS if varied[0].base != "bool" else ALWAYS}
        yield from maker.of(source, fewer.get(source.base, ALWAYS))


class Maker:
    """A maker of samples of other sizes, from one sample at a time."""

    def __init__(self, trials: Trials, values: HasValues, *, pointwise: bool = False, repeats: bool = False) -> None:
        self._trials = trials
        self._values = values
        self._pointwise = pointwise
        self._repeats = repeats  # indices may name an element twice, also where either write may win

    def of(self, source: Sample, always: Sequence[int] = ALWAYS) -> Iterator[Sample]:
        """Yield the sample in other sizes than its own. Each of its groups takes the sizes of ``always``."""
        turns = Turns(source)
        groups = self.groups(source, turns.first)
        for group in groups[: GROUPS[source.base]]:
            name = label(source, group.places)
            summed = not self._pointwise and self.is_summed(source, group, turns.first)
            for n in reversed(_sizes(f"{source.overload} {name}", group.size, always)):
                beside = {p: min(g.size, 2) for g in groups if g != group for p in g.places} if n > LARGE else {}
                dtypes = _halves_first(turns.dtypes()) if summed and n == max(ALWAYS) else turns.dtypes()
                found = list(self.made(source, beside | dict.fromkeys(group.places, n), f"{name}={n}", dtypes))
                if not found and summed and beside:
                    found = list(self._beside_one(source, group, groups, n, dtypes))
                if not found and n > group.size:
                    found = list(self._alone(source, group, beside, n, dtypes))
                turns.taken += bool(found)
                yield from found
                if found and n == max(ALWAYS) and not self._pointwise:
                    yield from self._ordered(found[0], dtypes)
                    yield from self._of_narrow_indices(found[0], dtypes)
        if groups:
            for together in TOGETHER:
                change = {p: n for g, n in zip(groups, together, strict=False) for p in g.places}
                name = "all=" + "x".join(map(str, together[: len(groups)]))
                yield from turns.counted(self.made(source, change, name, turns.dtypes()))
        for candidate, name in longer_or_deeper(source):
            candidates = filled(source, candidate, {}, self._values)
            yield from turns.counted(self._tried(candidates, name, turns.dtypes()))

    def _beside_one(
        self, source: Sample, group: Group, groups: Sequence[Group], n: int, dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield the sample with a long sum and a size of 1, for a sample that is too large with sizes of 2."""
        for one in (g for g in groups if g != group):
            change: dict[Place, int] = {p: min(g.size, 2) for g in groups for p in g.places}
            change |= dict.fromkeys(one.places, 1) | dict.fromkeys(group.places, n)
            found = list(self.made(source, change, f"{label(source, group.places)}={n}", dtypes))
            if found:
                yield from found
                return

    def _alone(
        self, source: Sample, group: Group, beside: dict[Place, int], n: int, dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield samples in which only the length of an index changes.

        Sizes that are equal by chance change together, and may be too large together. No other size changes alone,
        because not every CPU kernel checks that the sizes of other arguments agree.
        """
        read = {s.index for s in source.tensors if indexes(s) and not s.written}
        indices = [p for p in group.places if isinstance(p, Extent) and p.slot in read]
        for place in indices if len(group.places) > 1 else ():
            one: dict[Place, int] = {place: n}
            changes = (beside | one, one)  # an index may be too large for the sizes beside it
            every = (list(self.made(source, c, f"{label(source, [place])}={n}", dtypes)) for c in changes)
            yield from next(filter(None, every), [])

    def groups(self, source: Sample, dtype: str) -> list[Group]:
        """Return the groups of sizes of a sample that can change. The sizes of a group change together."""
        found: list[Group] = []
        taken: set[Place] = set()
        sizes = [(place, n) for place, n in places(source) if not _is_fixed(source, place)]
        for place, n in list(extents(source)) or sizes:
            if place not in taken and n > 1:
                others = [p for p, m in sizes if m == n and p != place and p not in taken]
                chosen = next((c for c in _candidates(place, others) if self._grows(source, c, n, dtype)), None)
                if chosen:
                    found.append(Group(chosen, n))
                    taken |= set(chosen)
        return found

    def _grows(self, source: Sample, together: Collection[Place], n: int, dtype: str) -> bool:
        sizes = (factor * n + more for factor, more in _PROBES)
        return any(self._ran(source, dict.fromkeys(together, size), dtype) is not None for size in sizes)

    def is_summed(self, source: Sample, group: Group, dtype: str) -> bool:
        """Return whether a size can grow without any result growing, such as the depth of a product."""
        before = self._trials.run(source, dtype)
        sizes = (factor * group.size + more for factor, more in _PROBES)
        grown = (self._ran(source, dict.fromkeys(group.places, n), dtype) for n in sizes)
        ran = next(filter(None, grown), None)
        return bool(before and before.shapes and ran and ran.shapes == before.shapes)

    def made(self, source: Sample, change: dict[Place, int], name: str, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with other sizes, if it runs on CPU."""
        yield from self._tried(self._filled(source, change), name, dtypes)

    def made_of(
        self, source: Sample, change: dict[Place, int], fill: tuple[int, str], dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield the sample with other sizes and with a fill in one slot, by its index, if it runs on CPU."""
        yield from self.made_with(source, change, dict([fill]), fill[1], dtypes)

    def made_with(
        self, source: Sample, change: dict[Place, int], fills: Mapping[int, str], name: str, dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield the sample with other sizes and with ``fills``, by the index of a slot, if it runs on CPU."""
        for sample in self._filled(source, change):
            slots = [
                replace(s, fill=fills[s.index], source=s.source or s.numel) if s.index in fills else s
                for s in sample.tensors
            ]
            found = list(self._tried([with_tensors(sample, slots)], name, dtypes))
            if found:
                yield from found
                return

    def _filled(self, source: Sample, change: dict[Place, int]) -> Iterator[Sample]:
        return filled(source, resized(source, change), change, self._values, repeats=self._repeats)

    def called(self, source: Sample, sample: Sample, name: str, dtypes: tuple[str, ...], axis: str) -> Iterator[Sample]:
        """Yield the sample, if it runs on CPU. The tensors that have no fill get values as in ``source``."""
        slots = [s if s.fill else refilled(source, s, self._values, 0) for s in sample.tensors]
        for made in self._tried([with_tensors(sample, slots)], name, dtypes):
            yield replace(made, axis=axis)

    def stored(self, sample: Sample, name: str, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with its stored values, if it runs on CPU."""
        yield from self._tried([sample], name, dtypes)

    def _ordered(self, sample: Sample, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with the values of its first argument in order, unless whole floats would be moved."""
        for slot in sample.tensors[:1]:
            exact = kind_of(slot.dtype or sample.base) in ("int", "bool")
            movable = slot.fill == "jitter" or (slot.fill == "choose" and exact)
            for fill in ORDERS if movable and not indexes(slot) else ():
                ordered = with_tensors(sample, [replace(slot, fill=fill), *sample.tensors[1:]])
                yield from self._tried([ordered], fill, dtypes)

    def _of_narrow_indices(self, sample: Sample, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with indices of int32, if it has indices of int64."""
        slots = [replace(s, dtype="int32") if s.pool and s.dtype == "int64" else s for s in sample.tensors]
        if tuple(slots) != sample.tensors:
            yield from self._tried([with_tensors(sample, slots)], "int32", dtypes)

    def _tried(self, candidates: Iterable[Sample], name: str, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the first candidate that runs in the first dtype, in this dtype and a few others in which it runs."""
        for sample in candidates:
            if ran := self._trials.run(sample, dtypes[0]):
                others = (d for d in dtypes[1:] if self._trials.run(ran.sample, d))
                kept = (dtypes[0], *islice(others, OTHER_DTYPES))
                yield replace(ran.sample, name=f"{sample.name}.{name}", dtypes=kept, axis=AXIS)
                return

    def _ran(self, source: Sample, change: dict[Place, int], dtype: str) -> Ran | None:
        for sample in self._filled(source, change):
            if ran := self._trials.run(sample, dtype):
                return ran
        return None


def _halves_first(dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dtypes with the half dtypes next to the first: a long sum shows whether partial sums are rounded."""
    return (dtypes[0], *sorted(dtypes[1:], key=lambda d: d not in HALVES))


def _candidates(place: Place, others: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield the places that may have to change together, in the order in which to try them.

    Not every CPU kernel checks that sizes agree. So a size changes together with equal sizes of as many other tensors
    as possible, one size of each. It changes alone only if no other tensor has an equal size.
    """
    if not isinstance(place, Extent):
        yield (place,)
        yield (place, *others)
        return
    numbers = [p for p in others if not isinstance(p, Extent)]
    by_slot: dict[int, list[Place]] = {}
    for p in others:
        if isinstance(p, Extent) and p.slot != place.slot:
            by_slot.setdefault(p.slot, []).append(p)
    for places_of in by_slot.values():
        places_of.sort(key=lambda p: isinstance(p, Extent) and p.dim != place.dim)
    every = [[p for p in one if p is not None] for one in product(*([*of, None] for of in by_slot.values()))]
    some = sorted((one for one in every if one or not by_slot), key=lambda one: -len(one))
    chosen = some[:_MOST_CANDIDATES]
    yield from ((place, *one) for one in chosen)
    yield from ((place, *one, *numbers) for one in chosen if numbers)
    if by_slot:
        yield (place, *(p for p in others if isinstance(p, Extent)))
    yield (place, *others)


def _sizes(name: str, size: int, always: Iterable[int]) -> list[int]:
    """Return the sizes that a group takes."""
    at = zlib.crc32(name.encode())
    return [n for n in sorted({*always, EDGES[at % len(EDGES)]}) if n != size]


def _is_fixed(source: Sample, place: Place) -> bool:
    """Return whether a place is an integer of an argument that keeps its values, such as an end of ``logspace``."""
    fixed = ops.facts(source.overload).fixed
    if not fixed or isinstance(place, Extent):
        return False
    first = place.path[0]
    return (first if isinstance(first, str) else schema_of(call_of(source.overload)).arguments[first].name) in fixed
