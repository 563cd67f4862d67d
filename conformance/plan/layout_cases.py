"""The cases of one sample in a cell of a layout: the arguments that have the layout."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, islice, pairwise
from random import Random

from conformance import layouts
from conformance.corpus.model import Sample, TensorSlot
from conformance.layouts import AS_STRIDED, CHANNEL_SLICE, FILLED, GENERATED, Placement
from conformance.ops import facts
from conformance.plan.case import Case, contiguous, movable, placed, put, slot_dtype
from conformance.vocabulary import CellId

# The layout of generated sizes with drawn strides.
SIZES_STRIDED = "sizes_strided"
# Layouts that change the sizes of their arguments.
RESHAPING = frozenset({"zero_size", "zero_dim"})
# The variants of arguments with their channels innermost that are not dense in a storage of their own.
OFFSET, SLICE = "offset", "slice"
# The variant of arguments that are the middle of larger matrices.
INNER = "inner"
# The fill of an argument that has every hard value.
HARD = "hard/0"
# A layout on one argument alone is tried on at most this many arguments of a sample (and on all of them at once).
SINGLES = 3
# The probability that a complex argument with drawn strides is a conjugated view, if it is not written.
CONJUGATED = 0.5
# The most elements of a tensor in a generated sample with drawn strides.
SMALL = 4096
# The fewest channels of a generated sample with its channels innermost: as many as a vector has elements.
CHANNELS = 8
# The most elements of a tensor in a generated sample with its channels innermost.
IN_CHANNELS = 65_536


def in_one_layout(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    """Yield a case with the layout on every argument that can have it, then a case for each of them alone.

    A layout that changes sizes is put on one argument alone only if sizes broadcast. Other ops may trust that the sizes
    of their arguments fit, and then even the CPU's result is undefined.
    """
    if cell.layout == "contiguous":
        yield Case(cell, sample, "", put(sample, {}))
        return
    moved = {s.index: p for s in movable(sample) if (p := placed(s, cell.layout, cell.dtype))}
    if not moved:
        return
    if len(moved) > 1:
        yield Case(cell, sample, "all", put(sample, moved))
        if cell.layout in RESHAPING and not pointwise:
            return
    for index in list(moved)[:SINGLES]:
        yield Case(cell, sample, sample.tensors[index].name, put(sample, {index: moved[index]}))
    if cell.layout == "channels_last":
        inside = {s.index: p for s in movable(sample) if (p := layouts.channels_last_inside(s.shape))}
        yield Case(cell, sample, OFFSET, put(sample, inside))
    if cell.layout == "offset_gap":
        inner = {s.index: p for s in movable(sample) if (p := layouts.inner_part(s.shape))}
        if inner:
            yield Case(cell, sample, INNER, put(sample, inner))


def broadcast(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield cases with one argument as a column, and a case with a column and a row in two arguments.

    The other arguments are whole, and a written argument keeps its size. A repeated row, of stride 0, belongs to the
    layout ``expanded``.
    """
    wide = [s for s in movable(sample) if s.shape and s.shape[-1] > 1]
    read = [s for s in wide if s.pool and not s.written]
    if len(wide) < 2:
        return
    for slot in read[:SINGLES]:
        moved = {slot.index: layouts.with_one(slot.shape, -1)}
        yield Case(cell, sample, slot.name, put(sample, moved))
    tall = [s for s in read if len(s.shape) > 1 and s.shape[-2] > 1]
    for a, b in islice(pairwise(tall), 1):
        moved = {a.index: layouts.with_one(a.shape, -1), b.index: layouts.with_one(b.shape, -2)}
        yield Case(cell, sample, f"{a.name}x{b.name}", put(sample, moved))


def _alias_pairs(cell: CellId, sample: Sample, pointwise: bool) -> list[tuple[TensorSlot, TensorSlot]]:
    """Return pairs of arguments of one shape and dtype that may be the same memory.

    Both are read, or the first is ``self`` of an in-place op, or the second is an ``out=``. Outside pointwise ops, the
    result of an ``out=`` that is also an input is undefined, so there are no such pairs.
    """
    free = [s for s in movable(sample) if s.numel > 0]
    read, to_out = [], []
    for i, a in enumerate(free):
        for b in free[i + 1 :]:
            same = a.shape == b.shape and slot_dtype(a, cell.dtype) == slot_dtype(b, cell.dtype)
            if same and a.pool and b.pool and not b.written and (not a.written or a.name == "self"):
                read.append((a, b))
            if same and a.pool and pointwise and b.written and not a.written:
                to_out.append((a, b))
    return read[:SINGLES] + to_out[:SINGLES]


def aliased(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    for a, b in _alias_pairs(cell, sample, pointwise):
        yield Case(cell, sample, f"{a.name}={b.name}", put(sample, {}), ((b.index, a.index, 0),))
        if a.written and a.pool and len(a.shape) > 1 and a.shape[-1] == a.shape[-2] > 1:
            placements = put(sample, {b.index: _turned(b)})
            yield Case(cell, sample, f"{a.name}%{b.name}", placements, ((b.index, a.index, 0),))
        if not (a.written or b.written):  # a fallback that copies to the host cannot see that memory overlaps
            yield Case(cell, sample, f"{a.name}~{b.name}", _overlap(sample, a), ((b.index, a.index, 1),))
            if moved := layouts.place("transposed", b.shape) or layouts.place("step2", b.shape):
                whole = replace(contiguous(a), storage=moved.storage)
                placements = put(sample, {a.index: whole, b.index: moved})
                yield Case(cell, sample, f"{a.name}^{b.name}", placements, ((b.index, a.index, 0),))
    yield from _elements(cell, sample)
    yield from _neighbours(cell, sample)


def _neighbours(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield cases with two arguments in one storage, one after the other; also with alternating elements.

    One or both arguments are written. Alternating arguments have one shape. A kernel that writes one argument as the
    whole storage damages the other one.
    """
    for a, b in _neighbour_pairs(cell, sample):
        first = replace(contiguous(a), layout=FILLED, storage=a.numel + b.numel)
        yield Case(cell, sample, f"{a.name}+{b.name}", put(sample, {a.index: first}), ((b.index, a.index, a.numel),))
        if a.written and a.shape == b.shape and a.numel > 1:
            every_other = tuple(2 * step for step in first.stride)
            first, second = (replace(p, stride=every_other) for p in (first, contiguous(b)))
            placements = put(sample, {a.index: first, b.index: second})
            yield Case(cell, sample, f"{a.name}&{b.name}", placements, ((b.index, a.index, 1),))


def _neighbour_pairs(cell: CellId, sample: Sample) -> list[tuple[TensorSlot, TensorSlot]]:
    """Return pairs of one dtype: two written arguments, an input and an ``out=``, or one written in place and an input.

    The second argument gets values of the first one, or has none before the call. So an input that follows has the
    cell's dtype, since other integers may be indices.
    """
    host = facts(sample.overload).host
    free = [s for s in movable(sample) if s.numel > 0 and not s.on_host and s.argument not in host]
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
    """Return the placement of a batch of square matrices, each of which is read along its columns."""
    *outer, rows, columns = contiguous(slot).stride
    return Placement("transposed", slot.shape, (*outer, columns, rows), 0, slot.numel)


def _elements(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield cases in which an argument without dimensions is the last element of another argument.

    If the other argument is written, the element must be its ``value``, which an op reads before it writes. The result
    is undefined if an op overwrites another operand.
    """
    free = [s for s in movable(sample) if s.numel > 0 and s.pool]
    host = facts(sample.overload).host
    for b in [s for s in free if not (s.shape or s.written or s.on_host or s.argument in host)]:
        earlier = [s for s in free if s.index < b.index and s.numel > 1 and (not s.written or b.argument == "value")]
        for a in earlier[:1]:
            if slot_dtype(a, cell.dtype) == slot_dtype(b, cell.dtype):
                yield Case(cell, sample, f"{a.name}:{b.name}", put(sample, {}), ((b.index, a.index, a.numel - 1),))


def _overlap(sample: Sample, a: TensorSlot) -> tuple[Placement, ...]:
    """Return placements with one spare element behind slot ``a``, so that another slot can begin one element later."""
    p = contiguous(a)
    return put(sample, {a.index: Placement("contiguous", p.size, p.stride, 0, p.storage + 1)})


def mixed(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield two cases that deal layouts to the arguments in rotation. The start depends on the sample's name alone."""
    free = movable(sample)
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
            yield Case(cell, sample, f"deal{deal}", put(sample, moved))


def _deal(slot: TensorSlot, at: int, dtype: str) -> tuple[int, Placement]:
    """Return the next position in the rotation, and the slot's placement in the next layout that fits it.

    A written slot is not expanded. If no layout fits, the placement is contiguous.
    """
    for _ in layouts.MIXABLE:
        layout = layouts.MIXABLE[at % len(layouts.MIXABLE)]
        at += 1
        placement = placed(slot, layout, dtype)
        if placement and not (slot.written and layout == "expanded"):
            return at, placement
    return at, contiguous(slot)


def as_strided(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield a case with drawn strides for every argument. The draw depends only on the sample's name and the dtype."""
    draw = Random(f"{sample.name} {cell.dtype}")
    moved = {s.index: p for s in movable(sample) if (p := layouts.drawn(s.shape, draw, s.written))}
    for slot in movable(sample):
        is_read = slot.index in moved and not slot.written
        if is_read and layouts.carries("conj", slot_dtype(slot, cell.dtype)) and draw.random() < CONJUGATED:
            moved[slot.index] = replace(moved[slot.index], bit="conj")
    if moved:
        yield Case(cell, sample, "draw", put(sample, moved))


def generated(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield the cases of a generated sample, with the cell's layout on every argument that can have it."""
    layout = GENERATED[cell.layout][1]
    if layout == AS_STRIDED:
        yield from as_strided(cell, sample)
        if cell.layout == SIZES_STRIDED:
            yield from _one_turned(cell, sample)
        return
    if layout == CHANNEL_SLICE:
        yield from _in_channels(cell, sample)
        return
    moved = {s.index: p for s in movable(sample) if (p := placed(s, layout, cell.dtype))}
    if moved or layout == "contiguous":
        yield Case(cell, sample, "", put(sample, moved))
    if cell.layout == "values":
        yield from _hard_aliased(cell, sample)


def _one_turned(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield cases of square matrices in which those of one argument are transposed, and all others contiguous.

    A kernel that takes the strides of one argument for the strides of another stays within all of them.
    """
    square = [s for s in movable(sample) if len(s.shape) > 1 and s.shape[-1] == s.shape[-2] > 1 and s.numel]
    for slot in square[:SINGLES] if len(square) > 1 else ():
        yield Case(cell, sample, slot.name, put(sample, {slot.index: _turned(slot)}))


def _in_channels(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield cases with the channels of all arguments innermost: with an offset, and as slices of more channels.

    A kernel that takes both for dense, or for the beginning of a storage, reads other elements.
    """
    for variant, place in ((OFFSET, layouts.channels_last_inside), (SLICE, layouts.channel_slice)):
        moved = {s.index: p for s in movable(sample) if (p := place(s.shape))}
        if moved:
            yield Case(cell, sample, variant, put(sample, moved))


def has_channels(sample: Sample) -> bool:
    """Return whether a generated sample has a tensor with enough channels and several pixels, and no large tensor."""
    shapes = [s.shape for s in movable(sample) if len(s.shape) in (4, 5)]
    fitting = any(n and channels >= CHANNELS and min(pixels) > 1 for n, channels, *pixels in shapes)
    return fitting and all(s.numel <= IN_CHANNELS for s in sample.tensors)


def _hard_aliased(cell: CellId, sample: Sample) -> Iterator[Case]:
    """Yield a case in which an argument with all hard values is also another argument: NaN does not equal itself."""
    for a, b in _alias_pairs(cell, sample, pointwise=False)[:1]:
        if not a.written and HARD == a.fill != b.fill and sample.name.endswith(f".hard={a.name}"):
            yield Case(cell, sample, f"{a.name}={b.name}", put(sample, {}), ((b.index, a.index, 0),))


def has_many_dimensions(sample: Sample) -> bool:
    """Return whether a generated sample is small and has a tensor of many dimensions, or of three with a size of 1."""
    if sample.axis != "sizes" or any(s.numel > SMALL for s in sample.tensors):
        return False
    return any(len(s.shape) >= 3 and (len(s.shape) > 4 or 1 in s.shape) for s in movable(sample))
