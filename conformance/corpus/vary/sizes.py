"""Samples of other sizes. Which sizes of a sample are free is found by trying them on CPU.

The extents of a sample that must agree are equal, so only sizes equal to a given one are tried together with it.
Integers among the arguments take part (``normalized_shape``, ``split_sizes``).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import torch

from conformance import ops
from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample, TensorSlot
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
from conformance.corpus.vary.trial import MOST_ELEMENTS, Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "sizes"

# None, one, past the usual vectors, tiles and blocks, past 65,535 blocks, and full blocks. Every group takes them all.
ALWAYS = (0, 1, 33, 1024, 1025, 4097, 65537)
# Those of complex samples, which mostly share their loops with the others.
OF_COMPLEX = (33, 1025, 65537)
# At the edges of tiles. A group takes one of these, by its name.
EDGES = (
    15, 16, 17, 31, 32, 63, 64, 65, 127, 128, 129, 255, 257, 511, 512, 513, 1023, 2047, 2048, 2049, 4095, 4096, 8191,
)  # fmt: skip
# Several dimensions at once, last of equal sizes: what belongs to one of them cannot be told by its size.
TOGETHER = ((67, 35, 19, 9, 5), (129, 257, 3, 2, 2), (5, 9, 131, 17, 3), (521, 523, 1, 1, 1), (7, 7, 7, 7, 7))
# Orders of the values of the largest sample, by which what is searched for lies at its end.
ORDERS = ("ascending", "descending")
LARGE = 4000  # beside a size above, the other free sizes are 2
LENGTHS = (5, 9, 33, 70)  # of lists of tensors
RANKS = (6, 9)
_INDEXED = 6, 5  # a rank, and the length of lists that have an element for each of its dimensions but one
_MOST_CANDIDATES = 16
# A trial resizes n to 2 * n + 5, which is odd and larger; or to n + 1, where another size is a limit, as that of a
# tensor of whose elements an index may name none twice.
_PROBES = (2, 5), (1, 1)

SAMPLES = {"float32": 2, "int64": 1, "complex64": 1, "bool": 1}  # sources of an overload, by base
GROUPS = {"float32": 5, "int64": 3, "complex64": 2, "bool": 2}  # of sizes of one source
# A sample of another size runs in the first dtype, and in so many others. The sizes of a group take the others in
# turns, the largest first, so that each dtype has large sizes.
OTHER_DTYPES = 2


@dataclass(frozen=True, slots=True)
class Group:
    """Sizes that change together."""

    places: tuple[Place, ...]
    size: int


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other sizes; none if it is composite on every device."""
    if overload.is_composite_implicit:
        return
    maker = Maker(trials, values, pointwise="pointwise" in overload.tags)
    for source in sources(samples, values):
        yield from maker.of(source)


def sources(samples: Sequence[Sample], values: HasValues) -> list[Sample]:
    """Return the samples to vary: of each base, those that differ most in the ranks of their arguments."""
    plainness = {s.name: _plainness(s, values) for s in samples if usable(s)}
    found: list[Sample] = []
    for base, most in SAMPLES.items():
        if base == "bool" and found:
            break  # its kernels move or compare bytes, as those of the other dtypes do
        seen: set[object] = set()
        for sample in sorted((s for s in samples if s.base == base and usable(s)), key=lambda s: plainness[s.name]):
            signature = _signature(sample)
            if signature not in seen and len(seen) < most:
                seen.add(signature)
                found.append(sample)
    return found


def usable(sample: Sample) -> bool:
    """Whether a sample is one to generate others from."""
    return not sample.raises and not sample.axis


def _is_alike(sample: Sample, values: HasValues) -> bool:
    """Whether each argument of more than one element has equal ones, such as the counts of a mask."""
    slots = [s for s in sample.tensors if s.pool and s.numel > 1 and s.dtype is None and not s.same_as]
    flat = (values.value(s, sample.base).view(-1) for s in slots)
    return bool(slots) and all(bool((v == v[0]).all()) for v in flat)


def _plainness(sample: Sample, values: HasValues) -> tuple[bool, bool, bool, int, str]:
    """A key that puts samples with empty or one-element tensors last, before them those with equal values or dtypes."""
    sizes = [s.numel for s in sample.tensors if s.pool]
    other = sum(bool(s.pool) and (s.dtype is not None or bool(s.same_as)) for s in sample.tensors)
    return (0 in sizes, bool(sizes) and max(sizes) < 2, _is_alike(sample, values), other, sample.name)


def _signature(sample: Sample) -> object:
    ranks = tuple((len(s.shape), 1 in s.shape) for s in sample.tensors if s.pool)
    return ranks, tuple(name for name, arg in sample.kwargs if arg is not None)


class Maker:
    """Makes samples of other sizes from one sample after the other."""

    def __init__(self, trials: Trials, values: HasValues, *, pointwise: bool = False) -> None:
        self._trials = trials
        self._values = values
        self._pointwise = pointwise

    def of(self, source: Sample) -> Iterator[Sample]:
        """Yield samples of other sizes than those of ``source``."""
        turns = Turns(source)
        groups = self.groups(source, turns.first)
        for group in groups[: GROUPS[source.base]]:
            name = label(source, group.places)
            always = OF_COMPLEX if source.base == "complex64" else ALWAYS
            for n in reversed(_sizes(f"{source.overload} {name}", group.size, always)):
                beside = {p: min(g.size, 2) for g in groups if g != group for p in g.places} if n > LARGE else {}
                dtypes = turns.dtypes()
                found = list(self.made(source, beside | dict.fromkeys(group.places, n), f"{name}={n}", dtypes))
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
        for candidate, name in (*_longer(source), *_deeper(source), *_longer_and_deeper(source)):
            candidates = filled(source, candidate, {}, self._values)
            yield from turns.counted(self._tried(candidates, name, turns.dtypes()))

    def _alone(
        self, source: Sample, group: Group, beside: dict[Place, int], n: int, dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield samples in which the length of an index has changed alone.

        Sizes that are equal by chance change together, and may be too large together. Not every CPU kernel checks that
        the sizes of other arguments agree.
        """
        read = {s.index for s in source.tensors if _indexes(s) and not s.written}
        indices = [p for p in group.places if isinstance(p, Extent) and p.slot in read]
        for place in indices if len(group.places) > 1 else ():
            one: dict[Place, int] = {place: n}
            changes = (beside | one, one)  # an index may be too large for the sizes beside it
            every = (list(self.made(source, c, f"{label(source, [place])}={n}", dtypes)) for c in changes)
            yield from next(filter(None, every), [])

    def groups(self, source: Sample, dtype: str) -> list[Group]:
        """Return the sizes of a sample that can change, each with those that change with it."""
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

    def made(self, source: Sample, change: dict[Place, int], name: str, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with other sizes, if it runs on CPU."""
        yield from self._tried(filled(source, resized(source, change), change, self._values), name, dtypes)

    def made_of(
        self, source: Sample, change: dict[Place, int], fill: tuple[int, str], dtypes: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Yield the sample with other sizes and with a fill in the slot of an index, if it runs on CPU."""
        index, how = fill
        for sample in filled(source, resized(source, change), change, self._values):
            slots = [
                replace(s, fill=how, source=s.source or s.numel) if s.index == index else s for s in sample.tensors
            ]
            found = list(self._tried([with_tensors(sample, slots)], how, dtypes))
            if found:
                yield from found
                return

    def called(self, sample: Sample, name: str, dtypes: tuple[str, ...], axis: str) -> Iterator[Sample]:
        """Yield the sample with values for its sizes, if it runs on CPU."""
        for made in self._tried(filled(sample, sample, {}, self._values), name, dtypes):
            yield replace(made, axis=axis)

    def called_with(
        self, source: Sample, sample: Sample, name: str, dtypes: tuple[str, ...], axis: str
    ) -> Iterator[Sample]:
        """Yield the sample, if it runs on CPU, with values as in ``source`` for the tensors that have no fill."""
        slots = [s if s.fill else _refilled(source, s, self._values, 0) for s in sample.tensors]
        for made in self._tried([with_tensors(sample, slots)], name, dtypes):
            yield replace(made, axis=axis)

    def _ordered(self, sample: Sample, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with the values of its first argument in order. That moves floats: not whole ones."""
        for slot in sample.tensors[:1]:
            exact = kind_of(slot.dtype or sample.base) in ("int", "bool")
            movable = slot.fill == "jitter" or (slot.fill == "choose" and exact)
            for fill in ORDERS if movable and not _indexes(slot) else ():
                ordered = with_tensors(sample, [replace(slot, fill=fill), *sample.tensors[1:]])
                yield from self._tried([ordered], fill, dtypes)

    def _of_narrow_indices(self, sample: Sample, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the sample with indices of int32, if it has indices of int64."""
        slots = [replace(s, dtype="int32") if s.pool and s.dtype == "int64" else s for s in sample.tensors]
        if tuple(slots) != sample.tensors:
            yield from self._tried([with_tensors(sample, slots)], "int32", dtypes)

    def _tried(self, candidates: Iterable[Sample], name: str, dtypes: tuple[str, ...]) -> Iterator[Sample]:
        """Yield the first candidate that runs in the first dtype, with that and the first others in which it runs."""
        for sample in candidates:
            if ran := self._trials.run(sample, dtypes[0]):
                others = (d for d in dtypes[1:] if self._trials.run(ran.sample, d))
                kept = (dtypes[0], *islice(others, OTHER_DTYPES))
                yield replace(ran.sample, name=f"{sample.name}.{name}", dtypes=kept, axis=AXIS)
                return

    def _ran(self, source: Sample, change: dict[Place, int], dtype: str) -> Ran | None:
        for sample in filled(source, resized(source, change), change, self._values):
            if ran := self._trials.run(sample, dtype):
                return ran
        return None


def _candidates(place: Place, others: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield the places that may have to change together, in the order in which to try them.

    Not every CPU kernel checks that sizes agree. So a size changes together with equal sizes of as many other tensors
    as can be, one of each, and alone only where no other tensor has an equal one.
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


class Turns:
    """The dtypes of the samples that are made from one: always the first, and the others in turns."""

    def __init__(self, source: Sample) -> None:
        self.first = source.base if source.base in source.dtypes else source.dtypes[0]
        self._others = [d for d in source.dtypes if d != self.first and not d.startswith("float8") and d != "complex32"]
        self._start = zlib.crc32(source.name.encode())
        self.taken = 0  # turns

    def dtypes(self) -> tuple[str, ...]:
        """Return the first dtype, and the others beginning with those whose turn it is."""
        return (self.first, *self._from(self.taken))

    def counted(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples. Each takes a turn."""
        for sample in samples:
            self.taken += 1
            yield sample

    def of(self, name: str) -> tuple[str, ...]:
        """Return the first dtype, and another one: that with which the varied part's name ends, or one chosen by it."""
        named = tuple(d for d in self._others if name.endswith(f"_{d}"))
        return (self.first, *(named or self._from(zlib.crc32(name.encode())))[:1])

    def _from(self, turn: int) -> tuple[str, ...]:
        at = (self._start + turn * OTHER_DTYPES) % max(len(self._others), 1)
        return (*self._others[at:], *self._others[:at])


def filled(source: Sample, sample: Sample, change: dict[Place, int], values: HasValues) -> Iterator[Sample]:
    """Yield a resized sample with values, in the order in which to try them on CPU.

    First, integers that index a resized dimension reach its new end; then all are drawn from the stored ones.
    """
    indexes = any(_indexes(s) for s in sample.tensors)
    if indexes and ops.facts(sample.overload).last_wins:
        for bound in sorted({n for s in sample.tensors for n in s.shape if not _indexes(s)}, reverse=True):
            if all(max(s.shape, default=1) <= bound for s in sample.tensors if _indexes(s)):
                yield with_tensors(
                    sample, [_distinct(s, bound) or _refilled(source, s, values, 0) for s in sample.tensors]
                )
        return
    grown = max(change.values(), default=0)
    if grown and indexes:
        yield with_tensors(sample, [_refilled(source, s, values, grown) for s in sample.tensors])
    yield with_tensors(sample, [_refilled(source, s, values, 0) for s in sample.tensors])


def _distinct(slot: TensorSlot, bound: int) -> TensorSlot | None:
    """Return an index that names no element twice; None for other arguments, and for an index of a higher rank."""
    if not _indexes(slot) or slot.same_as:
        return None
    return replace(slot, fill=f"rows/{slot.shape[-1] if slot.shape else 1}/{bound}", source=0)


def _indexes(slot: TensorSlot) -> bool:
    return bool(slot.pool) and slot.dtype in ("int64", "int32")


def _refilled(source: Sample, slot: TensorSlot, values: HasValues, bound: int) -> TensorSlot:
    """Return the slot with the fill that suits its stored values; an index is drawn below ``bound``, if not 0."""
    named = (s for s in source.tensors if s.name == slot.name)
    stored_there = (s for s in source.tensors if (s.pool, s.start) == (slot.pool, slot.start))  # in a longer list
    old = next(named, None) or next(stored_there, slot)
    if not slot.pool or slot.same_as or not old.numel:
        return slot
    stored = values.value(replace(old, fill="", source=0), slot.dtype or source.base).view(-1)
    kept = "choose" if _is_whole(stored) else "jitter"
    index = _indexes(slot) and slot.argument not in ops.facts(source.overload).fixed
    fill = _index_fill(stored, slot.numel, bound) if index else kept
    if slot.numel == old.numel and not (bound and index):
        return replace(slot, fill="", source=0)
    return replace(slot, fill=fill, source=old.numel)


def _is_fixed(source: Sample, place: Place) -> bool:
    """Whether a place is an integer of an argument that keeps its values, such as an end of ``logspace``."""
    fixed = ops.facts(source.overload).fixed
    if not fixed or isinstance(place, Extent):
        return False
    first = place.path[0]
    return (first if isinstance(first, str) else schema_of(call_of(source.overload)).arguments[first].name) in fixed


def _is_whole(stored: torch.Tensor) -> bool:
    """Whether the values are whole numbers; of floats these are often counts, and are not to be moved."""
    if stored.is_complex():
        return False
    wide = stored.double()  # CPU truncates no float8
    return bool((wide == wide.trunc()).all())


def _index_fill(stored: torch.Tensor, count: int, bound: int) -> str:
    ascending = stored.numel() > 2 and bool((stored[1:] >= stored[:-1]).all())
    distinct = stored.unique().numel() == stored.numel() > 1
    if bound and int(stored.min()) >= 0 and not ascending:
        return f"distinct/{bound}" if distinct and count <= bound else f"below/{bound}"
    if distinct and not ascending and int(stored.min()) == 0 and int(stored.max()) == stored.numel() - 1:
        return f"distinct/{count}"
    return "sorted" if ascending else "choose"


def _longer(source: Sample, wanted: Sequence[int] = LENGTHS) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with longer lists of tensors, and of whatever else has a list as long as theirs."""
    lists = [a for a in (*source.args, *(a for _, a in source.kwargs)) if _is_tensors(a)]
    lengths = {len(a) for a in lists if isinstance(a, tuple)}
    if len(lengths) != 1:
        return
    (length,) = lengths
    for n in wanted:
        yield _with_lists(source, length, n), f"list={n}"


def _is_tensors(arg: Arg) -> bool:
    return isinstance(arg, tuple) and bool(arg) and all(isinstance(a, TensorSlot) for a in arg)


def _with_lists(source: Sample, length: int, n: int) -> Sample:
    """Return the sample with each list of ``length`` repeated up to ``n``."""
    slots: list[TensorSlot] = []

    def repeated(arg: Arg) -> Arg:
        if isinstance(arg, TensorSlot):
            slots.append(replace(arg, index=len(slots)))
            return slots[-1]
        if isinstance(arg, tuple) and len(arg) == length and not any(isinstance(a, (tuple, int)) for a in arg):
            return tuple(repeated(_renamed(arg[i % length], i)) for i in range(n))
        return tuple(repeated(a) for a in arg) if isinstance(arg, tuple) else arg

    args = tuple(repeated(a) for a in source.args)
    kwargs = tuple((k, repeated(a)) for k, a in source.kwargs)
    return replace(source, args=args, kwargs=kwargs, tensors=tuple(slots))


def _renamed(arg: Arg, i: int) -> Arg:
    """Return an element of a list as its element ``i``."""
    if not isinstance(arg, TensorSlot):
        return arg
    return replace(arg, name=f"{arg.name.partition('[')[0]}[{i}]", same_as="")


def _deeper(source: Sample) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with more dimensions in front of those of its tensors of the highest rank."""
    for wanted in RANKS:
        yield from ((sample, f"rank={wanted}") for sample in deeper(source, wanted, (2, 1, 3, 1, 2, 1, 1, 2, 1)))


def deeper(source: Sample, wanted: int, front: tuple[int, ...]) -> Iterator[Sample]:
    """Yield the sample with ``wanted`` dimensions, the first of ``front`` in front; none if it has as many or none."""
    rank = max((len(s.shape) for s in source.tensors if s.pool), default=0)
    if 0 < rank < wanted:
        yield _with_front(source, rank, front[: wanted - rank])


def _with_front(source: Sample, rank: int, front: tuple[int, ...]) -> Sample:
    slots = [replace(s, shape=(*front, *s.shape)) if len(s.shape) == rank else s for s in source.tensors]
    return with_tensors(source, slots)


def _longer_and_deeper(source: Sample) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with a longer list of tensors, such as indices, of which each needs a dimension of another one.

    The dimensions in front are as large as the largest, so that an index of any is an index of all.
    """
    wanted, length = _INDEXED
    shapes = [s.shape for s in source.tensors if s.pool and s.shape]
    rank = max(map(len, shapes), default=0)
    largest = max((n for shape in shapes for n in shape), default=0)
    if 0 < rank < wanted and largest**wanted <= MOST_ELEMENTS:
        deeper = _with_front(source, rank, (largest,) * (wanted - rank))
        for sample, name in _longer(deeper, (length,)):
            yield sample, f"rank={wanted}.{name}"
