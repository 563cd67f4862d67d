"""Inventory × corpus × dtype × layout: cells, and the cases in each, under ids that do not drift."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from random import Random

from conformance import layouts
from conformance.corpus.model import Sample, TensorSlot
from conformance.layouts import ALIASED, AS_STRIDED, CONTEXTS, FILLED, GENERATED, MIXED, SEQUENCE, Placement
from conformance.ops import facts
from conformance.plan import kinds
from conformance.plan.tiers import TIERS, Tier
from conformance.vocabulary import CaseId, CellId

# Layouts that change the size of what they fall on.
RESHAPING = frozenset({"zero_size", "zero_dim"})
# A layout on one argument alone is tried on at most this many arguments of a sample (and on all of them at once).
SINGLES = 3


@dataclass(frozen=True, slots=True)
class Case:
    """A cell × one sample × the arguments the layout falls on: the smallest thing that runs and replays.

    ``placements`` has one entry a slot of the sample; ``shared`` lists the slots that lie in an earlier slot's storage.
    """

    cell: CellId
    sample: Sample
    variant: str  # the argument the layout is applied to, "all", or "" for contiguous
    placements: tuple[Placement, ...]
    shared: tuple[tuple[int, int, int], ...] = ()  # (slot, earlier slot, offset in elements)
    before: tuple[Case, ...] = ()  # cases that run on the device first, and are not judged

    @property
    def id(self) -> str:
        """A :class:`CaseId` as text: nothing in it depends on an order of listing."""
        return str(CaseId(self.cell, self.sample.name, self.variant))


def slot_dtype(slot: TensorSlot, dtype: str) -> str:
    """The dtype a slot has in a cell of ``dtype``."""
    return slot.dtype or dtype


def _free(sample: Sample) -> list[TensorSlot]:
    """The slots that a layout may move: all but those that are the same tensor as an earlier one."""
    return [s for s in sample.tensors if not s.same_as]


def _contiguous(slot: TensorSlot) -> Placement:
    placement = layouts.place("contiguous", slot.shape)
    assert placement is not None  # every shape can be contiguous
    return placement


def _placed(slot: TensorSlot, layout: str, dtype: str) -> Placement | None:
    if not layouts.carries(layout, slot_dtype(slot, dtype)):
        return None
    return layouts.place(layout, slot.shape, slot.written)


def _put(sample: Sample, moved: dict[int, Placement]) -> tuple[Placement, ...]:
    return tuple(moved.get(s.index) or _contiguous(s) for s in sample.tensors)


def _one_layout(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    """The layout on every argument that can have it, then on each alone.

    A layout that changes sizes falls on one argument alone only where sizes broadcast: other ops may trust that the
    sizes of their arguments fit, and then not even the CPU's result is defined.
    """
    if cell.layout == "contiguous":
        yield Case(cell, sample, "", _put(sample, {}))
        return
    moved = {s.index: p for s in _free(sample) if (p := _placed(s, cell.layout, cell.dtype))}
    if not moved:
        return
    if len(moved) > 1:
        yield Case(cell, sample, "all", _put(sample, moved))
        if cell.layout in RESHAPING and not pointwise:
            return
    for index in list(moved)[:SINGLES]:
        yield Case(cell, sample, sample.tensors[index].name, _put(sample, {index: moved[index]}))


def _alias_pairs(cell: CellId, sample: Sample, pointwise: bool) -> list[tuple[TensorSlot, TensorSlot]]:
    """Pairs of like arguments: both are read, or the first is ``self`` of an in-place op, or the second an ``out=``.

    An ``out=`` that is also an input has no promised result outside pointwise ops, so it is not judged there.
    """
    free = [s for s in _free(sample) if s.numel > 0]
    read, to_out = [], []
    for i, a in enumerate(free):
        for b in free[i + 1 :]:
            same = a.shape == b.shape and slot_dtype(a, cell.dtype) == slot_dtype(b, cell.dtype)
            if same and a.pool and b.pool and not b.written and (not a.written or a.name == "self"):
                read.append((a, b))
            if same and a.pool and pointwise and b.written and not a.written:
                to_out.append((a, b))
    return read[:SINGLES] + to_out[:SINGLES]


def _aliased(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    for a, b in _alias_pairs(cell, sample, pointwise):
        yield Case(cell, sample, f"{a.name}={b.name}", _put(sample, {}), ((b.index, a.index, 0),))
        if a.written and a.pool and len(a.shape) > 1 and a.shape[-1] == a.shape[-2] > 1:
            placements = _put(sample, {b.index: _turned(b)})
            yield Case(cell, sample, f"{a.name}%{b.name}", placements, ((b.index, a.index, 0),))
        if not (a.written or b.written):  # a fallback that copies to the host cannot see that memory overlaps
            yield Case(cell, sample, f"{a.name}~{b.name}", _overlap(sample, a), ((b.index, a.index, 1),))
            if moved := layouts.place("transposed", b.shape) or layouts.place("step2", b.shape):
                whole = replace(_contiguous(a), storage=moved.storage)
                placements = _put(sample, {a.index: whole, b.index: moved})
                yield Case(cell, sample, f"{a.name}^{b.name}", placements, ((b.index, a.index, 0),))
    yield from _elements(cell, sample)
    yield from _neighbours(cell, sample)


def _neighbours(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Two arguments in one storage, of which one or both are written, behind each other; and in turns where alike.

    Each keeps what was written to it, unless the other one is written as the whole storage.
    """
    for a, b in _neighbour_pairs(cell, sample):
        first = replace(_contiguous(a), layout=FILLED, storage=a.numel + b.numel)
        yield Case(cell, sample, f"{a.name}+{b.name}", _put(sample, {a.index: first}), ((b.index, a.index, a.numel),))
        if a.written and a.shape == b.shape and a.numel > 1:
            every_other = tuple(2 * step for step in first.stride)
            first, second = (replace(p, stride=every_other) for p in (first, _contiguous(b)))
            placements = _put(sample, {a.index: first, b.index: second})
            yield Case(cell, sample, f"{a.name}&{b.name}", placements, ((b.index, a.index, 1),))


def _neighbour_pairs(cell: CellId, sample: Sample) -> list[tuple[TensorSlot, TensorSlot]]:
    """Pairs of one dtype: both written, an input and an ``out=``, or what is written in place and an input.

    The second one gets values of the first, or has none before the call. Integers that are read may be indices.
    """
    host = facts(sample.overload).host
    free = [s for s in _free(sample) if s.numel > 0 and not s.on_host and s.argument not in host]
    both, to_out, in_place = [], [], []
    for a, b in combinations(free, 2):
        if slot_dtype(a, cell.dtype) != slot_dtype(b, cell.dtype):
            continue
        if a.written and b.written and bool(a.pool) == bool(b.pool):
            both.append((a, b))
        elif b.written and not (a.written or b.pool):
            to_out.append((a, b))
        elif a.written and a.pool and not b.written and b.dtype is None:
            in_place.append((a, b))
    return both[:SINGLES] + to_out[:1] + in_place[:1]


def _turned(slot: TensorSlot) -> Placement:
    """A batch of square matrices, each read along its columns."""
    *outer, rows, columns = _contiguous(slot).stride
    return Placement("transposed", slot.shape, (*outer, columns, rows), 0, slot.numel)


def _elements(cell: CellId, sample: Sample) -> Iterator[Case]:
    """An argument without dimensions that is the last element of another one; of a written one, if it is its value.

    An op reads a value before it writes. What another operand that it overwrites gives is not defined.
    """
    free = [s for s in _free(sample) if s.numel > 0 and s.pool]
    host = facts(sample.overload).host
    for b in [s for s in free if not (s.shape or s.written or s.on_host or s.argument in host)]:
        earlier = [s for s in free if s.index < b.index and s.numel > 1 and (not s.written or b.argument == "value")]
        for a in earlier[:1]:
            if slot_dtype(a, cell.dtype) == slot_dtype(b, cell.dtype):
                yield Case(cell, sample, f"{a.name}:{b.name}", _put(sample, {}), ((b.index, a.index, a.numel - 1),))


def _overlap(sample: Sample, a: TensorSlot) -> tuple[Placement, ...]:
    """Slot ``a`` with one element to spare behind it, for another slot to begin one element later."""
    p = _contiguous(a)
    return _put(sample, {a.index: Placement("contiguous", p.size, p.stride, 0, p.storage + 1)})


def _mixed(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Two deals of the rotation, the starting point taken from the sample's name so that ids stay as they are."""
    free = _free(sample)
    if len(free) < 2:
        return
    start = zlib.crc32(sample.name.encode())
    for deal in (0, 3):
        moved: dict[int, Placement] = {}
        at = start + deal
        for slot in free:
            at, placement = _deal(slot, at, cell.dtype)
            moved[slot.index] = placement
        if sum(p.layout != "contiguous" for p in moved.values()) >= 2:
            yield Case(cell, sample, f"deal{deal}", _put(sample, moved))


def _deal(slot: TensorSlot, at: int, dtype: str) -> tuple[int, Placement]:
    """The next layout of the rotation that fits the slot (expanded only where it is not written)."""
    for _ in layouts.MIXABLE:
        layout = layouts.MIXABLE[at % len(layouts.MIXABLE)]
        at += 1
        placement = _placed(slot, layout, dtype)
        if placement and not (slot.written and layout == "expanded"):
            return at, placement
    return at, _contiguous(slot)


def _as_strided(cell: CellId, sample: Sample) -> Iterator[Case]:
    """A draw for every argument. It depends on the sample's name and the dtype alone, so that it stays as it is."""
    draw = Random(f"{sample.name} {cell.dtype}")
    moved = {s.index: p for s in _free(sample) if (p := layouts.drawn(s.shape, draw, s.written))}
    for slot in _free(sample):
        is_read = slot.index in moved and not slot.written
        if is_read and layouts.carries("conj", slot_dtype(slot, cell.dtype)) and draw.random() < CONJUGATED:
            moved[slot.index] = replace(moved[slot.index], bit="conj")
    if moved:
        yield Case(cell, sample, "draw", _put(sample, moved))


def _generated(cell: CellId, sample: Sample) -> Iterator[Case]:
    """A generated sample, with every argument that can have it in the one layout."""
    layout = GENERATED[cell.layout][1]
    if layout == AS_STRIDED:
        yield from _as_strided(cell, sample)
        return
    moved = {s.index: p for s in _free(sample) if (p := _placed(s, layout, cell.dtype))}
    if moved or layout == "contiguous":
        yield Case(cell, sample, "", _put(sample, moved))


# How often a complex argument with drawn strides, which is not written, is a conjugated view.
CONJUGATED = 0.5
# Elements of the largest tensor of a generated sample with drawn strides.
SMALL = 4096

# What comes before a call in a sequence, at most so many of each kind.
SEQUENCE_DTYPES = ("float32", "int64")
SEQUENCE_SAMPLES = 2
_LAYOUTS_BEFORE = ("transposed", "offset_gap", "expanded")
_VARIANTS_BEFORE = 4
_SIZES_BEFORE = 8  # all of them before one call: more than a small cache holds


def sequences(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """The cases of a cell of sequences: each is a sample's call after calls that differ from it in one thing."""
    plain = [s for s in samples if not s.axis and not s.raises and cell.dtype in s.dtypes]
    plain.sort(key=lambda sample: not _variants_of(sample, samples))  # those with variants first
    for sample in plain[:SEQUENCE_SAMPLES]:
        for label, before in _before(cell, sample, samples):
            yield Case(cell, sample, f"after={label}", _put(sample, {}), (), tuple(before))
        # The other way round: a cache may keep what the first call of a shape put there.
        for variant in _variants_of(sample, samples)[:_VARIANTS_BEFORE]:
            if cell.dtype in variant.dtypes:
                yield Case(
                    cell, variant, f"after={sample.name}", _put(variant, {}), (), (_plainly(cell, cell.dtype, sample),)
                )


def _before(cell: CellId, sample: Sample, samples: Sequence[Sample]) -> Iterator[tuple[str, list[Case]]]:
    for layout in _LAYOUTS_BEFORE:
        moved = {s.index: p for s in _free(sample) if not s.written and (p := _placed(s, layout, cell.dtype))}
        if moved:
            yield layout, [Case(cell, sample, layout, _put(sample, moved))]
    for dtype in [d for d in sample.dtypes if d != cell.dtype][:2]:
        yield dtype, [_plainly(cell, dtype, sample)]
    for variant in _variants_of(sample, samples)[:_VARIANTS_BEFORE]:
        yield variant.name, [_plainly(cell, cell.dtype, variant)]
    for variant in [s for s in samples if s.raises and cell.dtype in s.dtypes][:1]:
        yield "error", [_plainly(cell, cell.dtype, variant)]
    sizes = [s for s in samples if s.axis == "sizes" and cell.dtype in s.dtypes]
    if sizes:
        yield "sizes", [_plainly(cell, cell.dtype, s) for s in sizes[:_SIZES_BEFORE]]


def _variants_of(sample: Sample, samples: Sequence[Sample]) -> list[Sample]:
    """Return the generated samples that replace one argument of a sample, and do not raise."""
    found = [s for s in samples if s.axis == "variants" and not s.raises]
    return [s for s in found if s.name.startswith(f"{sample.name}.")]


def _plainly(cell: CellId, dtype: str, sample: Sample) -> Case:
    """A contiguous case of a sample."""
    return Case(CellId(cell.family, cell.overload, dtype, "contiguous"), sample, "", _put(sample, {}))


# Samples of a cell of a context: what a context changes rarely depends on the values of the arguments.
CONTEXT_SAMPLES = 6
# The dtype of an overload's cells of a context: the first of these that its samples have, else their first.
CONTEXT_DTYPES = ("float32", "int64", "bool")
# Contexts with cells of other dtypes.
OTHER_CONTEXT_DTYPES = {"gradcheck": ("float64",)}
# Contexts with cells of more dtypes.
MORE_CONTEXT_DTYPES = {"autocast": ("bfloat16", "float64")}
# Contexts of which a sample has several cases.
CONTEXT_VARIANTS = {
    "autocast": ("bfloat16", "float16"),
    "backward": ("dense", "strided", "expanded", "accumulate", "first", "last", "each"),
    "forward_ad": ("all", "one", "last"),
    "vmap": ("0", "-1", "nested"),
    "deterministic": ("", "strided+transposed"),
    "no_grad": ("no_grad", "grad"),
    "copied": ("deepcopy", "pickle"),
    "compiled": ("eager", "aot_eager"),
    "inductor": ("inductor", "inductor+offset1"),
}
# Contexts of which a case takes seconds, with fewer samples.
FEWER_CONTEXT_SAMPLES = {"decomposed": 3, "compiled": 2, "inductor": 2}


def in_context(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yield the cases of a cell of a context: contiguous calls of some of the overload's samples."""
    own = [s for s in samples if not s.axis and cell.dtype in s.dtypes]
    refused = [s for s in own if s.raises][:2]
    most = FEWER_CONTEXT_SAMPLES.get(cell.layout, CONTEXT_SAMPLES)
    for sample in [s for s in own if not s.raises][:most]:
        for variant in CONTEXT_VARIANTS.get(cell.layout, ("",)):
            layout = variant.partition("+")[2]
            placements = _in_layout(sample, layout, cell.dtype)
            if not layout or any(p.layout == layout for p in placements):  # else it is the case without the layout
                yield Case(cell, sample, variant, placements)
        for other in refused if cell.layout == "after_error" else []:
            yield Case(cell, sample, f"after={other.name}", _put(sample, {}), (), (_plainly(cell, cell.dtype, other),))
    for sample in refused if cell.layout == "second_device" else []:
        yield Case(cell, sample, "", _put(sample, {}))


def _in_layout(sample: Sample, layout: str, dtype: str) -> tuple[Placement, ...]:
    """Return the placements of a sample with every argument that can have a layout in it; "" for contiguous ones."""
    return _put(sample, {s.index: p for s in _free(sample) if layout and (p := _placed(s, layout, dtype))})


def _of_contexts(overload: str, samples: Sequence[Sample], tier: Tier) -> dict[str, set[str]]:
    """Return the contexts in which an overload has cells, by dtype. The dtypes do not depend on those of the tier."""
    known = {dtype for s in samples if not s.axis and not s.raises for dtype in s.dtypes}
    wanted = [name for name in CONTEXTS if tier.has_context(name, overload)]
    found: dict[str, set[str]] = {}
    for name in wanted if known else ():
        first = next((d for d in CONTEXT_DTYPES if d in known), min(known))
        others = OTHER_CONTEXT_DTYPES.get(name, (first, *MORE_CONTEXT_DTYPES.get(name, ())))
        for dtype in {*others} & known:
            if tier.dtypes is None or dtype in tier.dtypes:
                found.setdefault(dtype, set()).add(name)
    return found


def axis_of(layout: str) -> str:
    """What the samples of a layout's cells vary; "" for the samples of the corpus themselves."""
    return GENERATED[layout][0] if layout in GENERATED else ""


def _takes(layout: str, sample: Sample) -> bool:
    """Whether a layout's cells have cases of a sample."""
    return sample.axis == axis_of(layout) or (layout == AS_STRIDED and _has_many_dimensions(sample))


def _has_many_dimensions(sample: Sample) -> bool:
    """Whether a generated sample is small and has a tensor of many dimensions, or of three with one of size 1."""
    shapes = [s.shape for s in _free(sample)]
    small = all(s.numel <= SMALL for s in sample.tensors)
    return small and sample.axis == "sizes" and any(len(s) >= 3 and (len(s) > 4 or 1 in s) for s in shapes)


def cases_of_sample(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    """Every case of one sample in a cell."""
    if cell.layout in GENERATED:
        return _generated(cell, sample)
    if cell.layout == ALIASED:
        return _aliased(cell, sample, pointwise)
    if cell.layout == MIXED:
        return _mixed(cell, sample)
    if cell.layout == AS_STRIDED:
        return _as_strided(cell, sample)
    return _one_layout(cell, sample, pointwise)


def cases(cell: CellId, samples: Iterable[Sample], most: int | None = None, pointwise: bool = False) -> list[Case]:
    """The cases of ``cell``, in the order they run. Empty where the layout fits no sample.

    ``most``: at most the cases of so many samples. ``pointwise``: the overload broadcasts its arguments.
    """
    if cell.layout == SEQUENCE:
        return list(sequences(cell, list(samples)))
    if cell.layout in CONTEXTS:
        return list(in_context(cell, list(samples)))
    fit: Iterable[Sample] = (s for s in samples if cell.dtype in _dtypes_in(cell.layout, s) and _takes(cell.layout, s))
    if most is not None and (cell.layout in GENERATED or cell.layout == AS_STRIDED):
        fit = kinds.spread(fit)
    each = (found for sample in fit if (found := list(cases_of_sample(cell, sample, pointwise))))
    return list(chain.from_iterable(islice(each, most)))


def cells(
    family: str,
    overload: str,
    samples: Iterable[Sample],
    tier: Tier = TIERS["wide"],
    generated: Mapping[str, Iterable[str]] | None = None,
    pointwise: bool = False,
) -> list[CellId]:
    """The cells of one overload: the dtypes its samples run in, and for each the layouts that fit a sample.

    ``generated``: the dtypes of samples that are not given, by the layouts of :func:`of_generated` that fit them.
    ``pointwise``: the overload broadcasts its arguments.
    """
    samples = list(samples)
    fits = _of_contexts(overload, samples, tier)
    for sample in samples:
        for dtype, names in _fitting(sample, tier, pointwise).items():
            fits.setdefault(dtype, set()).update(names)
    for name, dtypes in (generated or {}).items():
        if tier.layouts is None or name in tier.layouts:
            for dtype in dtypes:
                if tier.dtypes is None or dtype in tier.dtypes:
                    fits.setdefault(dtype, set()).add(name)
    return [
        CellId(family, overload, dtype, layout)
        for dtype in sorted(fits)
        for layout in layouts.LAYOUTS
        if layout in fits[dtype]
    ]


def _fitting(sample: Sample, tier: Tier, pointwise: bool) -> dict[str, set[str]]:
    """Layouts that fit a sample, by dtype. Shapes decide for all dtypes at once; only the bits ask for the dtype."""
    dtypes = [d for d in sample.dtypes if tier.dtypes is None or d in tier.dtypes]
    if not dtypes:
        return {}
    if sample.axis:
        of = of_generated(sample)
        wanted = of if tier.layouts is None else of.keys() & tier.layouts
        return {d: {n for n in wanted if d in of[n]} for d in dtypes}
    shaped = {name for name in layouts.PLACERS if name not in ("conj", "neg") and _fits(sample, name)}
    shaped.add("contiguous")
    result = {}
    for dtype in dtypes:
        names = set(shaped)
        names.update(bit for bit in ("conj", "neg") if _bit_fits(sample, bit, dtype))
        probe = CellId("", sample.overload, dtype, ALIASED)
        if next(_aliased(probe, sample, pointwise), None):
            names.add(ALIASED)
        if next(_mixed(probe, sample), None):
            names.add(MIXED)
        if _has_elements(sample):
            names.add(AS_STRIDED)
        if dtype in SEQUENCE_DTYPES and sample.tensors and not sample.raises:
            names.add(SEQUENCE)
        result[dtype] = names if tier.layouts is None else names & tier.layouts
    return result


def of_generated(sample: Sample) -> dict[str, tuple[str, ...]]:
    """The layouts of ``GENERATED`` that fit a generated sample, with the dtypes in which they have it."""
    of_axis = ((name, layout) for name, (axis, layout) in GENERATED.items() if axis == sample.axis)
    fitting = [name for name, layout in of_axis if layout == "contiguous" or _fits(sample, layout)]
    return {name: _dtypes_in(name, sample) for name in fitting}


def _dtypes_in(layout: str, sample: Sample) -> tuple[str, ...]:
    """The dtypes of the cells of a layout that have cases of a sample."""
    return sample.dtypes[:1] if layout in layouts.OF_FIRST_DTYPE else sample.dtypes


def _has_elements(sample: Sample) -> bool:
    return any(s.numel for s in _free(sample))


def _fits(sample: Sample, layout: str) -> bool:
    if layout == AS_STRIDED:
        return _has_elements(sample)
    return any(layouts.place(layout, s.shape, s.written) for s in _free(sample))


def _bit_fits(sample: Sample, bit: str, dtype: str) -> bool:
    return any(layouts.carries(bit, slot_dtype(s, dtype)) for s in _free(sample))
