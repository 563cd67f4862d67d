"""Samples with other lists of indices, for ops that take an index for each dimension.

The lists differ in the dimensions that have an index, and in the shapes of the indices. A recorded list often has one
index, or one for each of the first dimensions. Indices of dimensions that are not adjacent move the indexed dimensions
to the front of the result, indices of different shapes are broadcast, a mask takes as many dimensions as it has, and
each index may be on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.places import with_arguments, with_tensors
from conformance.corpus.vary.arguments import Other, replaced
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "variants"

_OTHERS = 3  # one list in this many is tried with the samples of other bases than the first
# The shape of the indexed tensor. No two sizes are equal, and each is at least the number of elements of its indices.
SHAPE = (7, 9, 6, 8)
# A shape in which a mask also fits other dimensions than its own.
EQUAL = (6, 6, 6)


@dataclass(frozen=True, slots=True)
class Mask:
    """An index of bools. Every second element is true."""

    shape: tuple[int, ...]


Index = tuple[int, ...] | Mask | None  # the shape of integers, a mask, or nothing for the dimension

LISTS: Mapping[str, tuple[Index, ...]] = {
    "second": (None, (3,)),
    "last": (None, None, None, (3,)),
    "neighbours": (None, (3,), (3,)),
    "apart": ((3,), None, (3,)),
    "apart_behind": (None, (3,), None, (3,)),
    "every": ((3,), (3,), (3,), (3,)),
    "crossed": ((3, 1), (2,)),
    "crossed_apart": ((2,), None, (3, 1)),
    "one": ((),),
    "one_apart": ((), None, (3,)),
    "square": (None, (2, 3)),
    "mask": (Mask(SHAPE[:1]),),
    "mask_of_second": (None, Mask(SHAPE[1:2])),
    "mask_of_two": (Mask(SHAPE[:2]),),
    "mask_of_last_two": (None, None, Mask(SHAPE[2:])),
    "mask_of_all": (Mask(SHAPE),),
    "mask_and_one": (Mask(SHAPE[:1]), None, ()),
}

MASKS_OF_EQUAL: Mapping[str, tuple[Index, ...]] = {
    "mask_of_first_equal": (Mask(EQUAL[:1]),),
    "mask_of_second_equal": (None, Mask(EQUAL[1:2])),
    "mask_of_two_equal": (Mask(EQUAL[:2]),),
}

# Lists that are tried with all indices on the host and, if there are several, with only the last one there.
ON_HOST = ("second", "apart_behind", "crossed", "mask_of_two")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other lists of indices, if it takes one."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    formal = next((a for a in schema.arguments if str(a.type) == "List[Optional[Tensor]]"), None)
    if formal is None:
        return
    flags = [a for a in schema.arguments if a.name == "accumulate"]
    writes = any(a.name == "values" for a in schema.arguments)
    bases: list[str] = []
    for source in sources(samples, values):
        index = next((s for s in source.tensors if s.argument == formal.name and s.dtype == "int64"), None)
        if index is None or source.base in bases:
            continue
        bases.append(source.base)
        maker, turns = Maker(trials, values), Turns(source)
        lists = list(enumerate(_lists()))
        for turn, (name, of, indices, on_host) in lists if len(bases) == 1 else lists[len(bases) :: _OTHERS]:
            shape = _shape_of_read(of, indices)
            for values_are, written in (
                _shapes_of_values(shape, 0 if of == EQUAL else turn) if writes else [([], shape)]
            ):
                sample = _indexed(source, formal.name, index, of, indices, written)
                sample = with_tensors(sample, _with_indices_on_host(sample, formal.name, on_host))
                on = (False, True) if written == shape else (turn % 2 == 0,)
                for flag, one in _flagged(sample, schema, flags, on):
                    whole = ".".join([f"{formal.name}={name}", *values_are, *flag])
                    yield from turns.counted(maker.called(source, one, whole, turns.of(whole), AXIS))


def _lists() -> Iterator[tuple[str, tuple[int, ...], tuple[Index, ...], slice]]:
    """Yield names, shapes of the indexed tensor, lists, and which of the indices are on the host."""
    for name, indices in LISTS.items():
        yield name, SHAPE, indices, slice(0)
    for name in ON_HOST:
        yield f"{name}_on_host", SHAPE, LISTS[name], slice(None)
        if sum(index is not None for index in LISTS[name]) > 1:
            yield f"{name}_last_on_host", SHAPE, LISTS[name], slice(-1, None)
    for name, indices in MASKS_OF_EQUAL.items():
        yield name, EQUAL, indices, slice(0)


def _with_indices_on_host(sample: Sample, argument: str, which: slice) -> list[TensorSlot]:
    """Return a sample's tensors, with some of the indices in this argument on the host."""
    there = [slot.index for slot in sample.tensors if slot.argument == argument][which]
    return [replace(slot, on_host=slot.index in there) for slot in sample.tensors]


def _flagged(
    sample: Sample, schema: Any, flags: Sequence[Any], values: Sequence[bool]
) -> Iterator[tuple[list[str], Sample]]:
    """Yield the sample with each value of each flag, and the name of this value; unchanged if there is no flag."""
    if not flags:
        yield [], sample
    for formal in flags:
        for value in values:
            other = Other(formal, value)
            yield [other.name], replaced(sample, schema, other)


def _shape_of_read(of: tuple[int, ...], indices: Sequence[Index]) -> tuple[int, ...]:
    # ``[]`` in Python would take an index without dimensions for a number.
    return tuple(torch.ops.aten.index.Tensor(torch.empty(of), [_stand_in(index) for index in indices]).shape)


def _shapes_of_values(shape: tuple[int, ...], turn: int) -> list[tuple[list[str], tuple[int, ...]]]:
    """Return shapes of the values to write, with their names: ``shape``, and a shape that broadcasts to it."""
    broadcast = ((), shape[-1:], (1,) * len(shape))[turn % 3]
    return [([], shape), *([(["broadcast"], broadcast)] if broadcast != shape else [])]


def _stand_in(index: Index) -> torch.Tensor | None:
    """Return an index of this shape, and None for a dimension without one."""
    if isinstance(index, Mask):
        return torch.arange(torch.Size(index.shape).numel()).reshape(index.shape) % 2 == 1
    return None if index is None else torch.zeros(index, dtype=torch.int64)


def _indexed(
    source: Sample,
    argument: str,
    index: TensorSlot,
    of: tuple[int, ...],
    indices: Sequence[Index],
    written: tuple[int, ...],
) -> Sample:
    """Return the call with another list of indices: its first tensor has the shape ``of``, other values ``written``."""
    slots: list[TensorSlot] = []

    def added(slot: TensorSlot) -> TensorSlot:
        slots.append(replace(slot, index=len(slots)))
        return slots[-1]

    def listed(position: int, wanted: Index) -> TensorSlot | None:
        name = f"{argument}[{position}]"
        if wanted is None:
            return None
        if isinstance(wanted, Mask):
            return added(replace(index, name=name, shape=wanted.shape, dtype="bool", fill="hard/0", source=index.numel))
        # Each element is named once, since the order of writes at equal indices is undefined. Some indices count from
        # the end.
        fill = f"around/{_size(of, indices, position)}"
        return added(replace(index, name=name, shape=wanted, fill=fill, source=index.numel))

    def changed(_: object, arg: Arg) -> Arg:
        if not isinstance(arg, TensorSlot):
            return arg
        if not arg.pool:
            return added(replace(arg, shape=(0,)))
        return added(replace(arg, shape=written if slots else of, fill="", source=0))

    def call(arg: Arg, name: str) -> Arg:
        if name == argument:
            return tuple(listed(i, wanted) for i, wanted in enumerate(indices))
        return with_arguments(replace(source, args=(arg,), kwargs=(), tensors=()), changed).args[0]

    names = [a.name for a in schema_of(call_of(source.overload)).arguments]
    args = tuple(call(arg, name) for name, arg in zip(names, source.args, strict=False))
    kwargs = tuple((name, call(arg, name)) for name, arg in source.kwargs)
    return replace(source, args=args, kwargs=kwargs, tensors=tuple(slots))


def _size(of: tuple[int, ...], indices: Sequence[Index], position: int) -> int:
    """Return the size of the dimension that an index is for."""
    before = sum(len(i.shape) if isinstance(i, Mask) else 1 for i in indices[:position])
    return of[before]
