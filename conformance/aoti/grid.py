"""The grid of mismatches: the calls that are tried for given example inputs. Pure, no torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

from conformance.aoti.model import Axis, Call, Dimension, Given, Input
from conformance.layouts import PLACERS, contiguous_stride

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
STRIDES = ("contiguous", "transposed", "channels_last", "step2", "outer_gap", "expanded")
ALIGNMENT = 64  # bytes, of the memory that torch's allocators return
LARGEST = 1 << 24  # elements of an input; larger ones are not tried
_FAR = 32  # factor of the largest size that is tried for a dimension without an upper bound


def grid(inputs: Sequence[Input], devices: Sequence[str] = (), loads: Sequence[str] = ()) -> list[Call]:
    """Return the calls for a model. The first call has the example inputs.

    ``devices``: other devices that an input can be on. ``loads``: other devices to load the model for.
    """
    calls = [Call(Axis.NOTHING, "the example inputs", tuple(i.given for i in inputs))]
    for index, given in enumerate(inputs):
        calls += [_one(inputs, index, *change) for change in _changes(given, devices)]
    calls += _together(inputs)
    calls += _number(inputs)
    calls += [replace(calls[0], axis=Axis.LOAD, what=device, load_device=device) for device in loads]
    return [call for call in calls if all(prod(g.size) <= LARGEST for g in call.inputs)]


def _one(inputs: Sequence[Input], index: int, axis: Axis, what: str, given: Given) -> Call:
    changed = tuple(given if i == index else other.given for i, other in enumerate(inputs))
    return Call(axis, what, changed, inputs[index].name, (index,))


Change = tuple[Axis, str, Given]


def _changes(one: Input, devices: Sequence[str]) -> Iterator[Change]:
    """Yield the changes of one input."""
    given = one.given
    for device in devices:
        if device.partition(":")[0] != given.device.partition(":")[0]:
            yield Axis.DEVICE, device, replace(given, device=device)
    for dtype in DTYPES:
        if dtype != given.dtype:
            yield Axis.DTYPE, dtype, replace(given, dtype=dtype)
    yield from _ranks(given)
    for dim, dimension in enumerate(one.dimensions):
        for size in sizes(dimension):
            yield Axis.SIZE, f"size({dim}) = {size}", resized(given, {dim: size})
    yield from _strides(given)
    yield from _offsets(one)


def _ranks(given: Given) -> Iterator[Change]:
    more = (1, *given.size)
    yield Axis.RANK, "a dimension of size 1 in front", replace(given, size=more, stride=contiguous_stride(more))
    if given.size:
        less = given.size[1:]
        yield Axis.RANK, "without dimension 0", replace(given, size=less, stride=contiguous_stride(less))


def sizes(dimension: Dimension) -> list[int]:
    """Return the sizes to try for a dimension: 0, 1, and sizes around its bounds or its own size, which is left out."""
    size = dimension.size
    if dimension.symbol:
        high = dimension.high
        tried = {0, 1, dimension.low - 1, dimension.low, size + 1}
        tried |= {high, high + 1, 2 * high} if high is not None else {2 * size, _FAR * size}
    else:
        tried = {0, 1, size // 2, size + 1, 2 * size, _FAR * size}
    return sorted(n for n in tried if n >= 0 and n != size)


def resized(given: Given, new: dict[int, int]) -> Given:
    """Return a contiguous input with other sizes of these dimensions. ``new``: the size by dimension."""
    size = tuple(new.get(dim, n) for dim, n in enumerate(given.size))
    return replace(given, size=size, stride=contiguous_stride(size), offset=0)


def _strides(given: Given) -> Iterator[Change]:
    seen = {_effective(given.size, given.stride)}
    for name in STRIDES:
        placed = PLACERS[name](given.size)
        if placed and placed.size == given.size and _effective(given.size, placed.stride) not in seen:
            seen.add(_effective(given.size, placed.stride))
            yield Axis.STRIDE, f"{name}, {_numbers(placed.stride)}", replace(given, stride=placed.stride, offset=0)


def _effective(size: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, with 0 for dimensions of size 1, whose strides have no effect."""
    return tuple(s if n > 1 else 0 for n, s in zip(size, stride, strict=True))


def _numbers(of: Iterable[int]) -> str:
    return "[" + ", ".join(map(str, of)) + "]"


def _offsets(one: Input) -> Iterator[Change]:
    if prod(one.given.size) == 0:
        return
    aligned = max(1, ALIGNMENT // one.itemsize)
    yield Axis.OFFSET, f"{aligned} elements", replace(one.given, offset=one.given.offset + aligned)
    yield Axis.ALIGNMENT, "1 element", replace(one.given, offset=one.given.offset + 1)


def _together(inputs: Sequence[Input]) -> Iterator[Call]:
    """Yield calls in which dimensions that belong together change together."""
    for name, places in _groups(inputs).items():
        first = inputs[places[0][0]].dimensions[places[0][1]]
        for size in sizes(first):
            yield _resized(inputs, places, name, size)


def _groups(inputs: Sequence[Input]) -> dict[str, list[tuple[int, int]]]:
    """Return the places (input, dimension) of each dynamic symbol and of the static batch that has at least two."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for index, one in enumerate(inputs):
        for dim, dimension in enumerate(one.dimensions):
            if dimension.symbol:
                found[dimension.symbol].append((index, dim))
    batches = [(i, one.dimensions[0]) for i, one in enumerate(inputs) if one.dimensions]
    static = [(i, 0) for i, first in batches if not first.symbol and first.size == batches[0][1].size]
    found["size(0)"] = static
    return {name: places for name, places in found.items() if len(places) > 1}


def _resized(inputs: Sequence[Input], places: list[tuple[int, int]], name: str, size: int) -> Call:
    new: dict[int, dict[int, int]] = defaultdict(dict)
    for index, dim in places:
        new[index][dim] = size
    changed = tuple(resized(one.given, new[i]) if i in new else one.given for i, one in enumerate(inputs))
    return Call(Axis.SIZES, f"{name} = {size}", changed, changed=tuple(sorted(new)))


def _number(inputs: Sequence[Input]) -> Iterator[Call]:
    every = tuple(one.given for one in inputs)
    if every:
        yield Call(Axis.NUMBER, f"{len(every) - 1} of {len(every)}", every[:-1], changed=(len(every) - 1,))
        yield Call(Axis.NUMBER, f"{len(every) + 1} of {len(every)}", (*every, every[-1]), changed=(len(every),))
