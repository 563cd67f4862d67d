"""The sizes in a sample: the extents of its tensors and the integers among its arguments. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from conformance.corpus.model import Arg, Sample, TensorSlot


@dataclass(frozen=True, slots=True)
class Extent:
    """A dimension of a tensor argument."""

    slot: int  # index of the slot
    dim: int


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer among the arguments, or in a list of them."""

    path: tuple[int | str, ...]  # positions; the first is a name for a keyword argument


Place = Extent | Integer


def extents(sample: Sample) -> Iterator[tuple[Extent, int]]:
    """Yield the extents of the tensors that have values, with their sizes."""
    for slot in sample.tensors:
        if slot.pool and not slot.same_as:
            yield from ((Extent(slot.index, d), n) for d, n in enumerate(slot.shape))


def integers(sample: Sample) -> Iterator[tuple[Integer, int]]:
    """Yield the integers among the arguments, with their values."""
    for i, arg in enumerate(sample.args):
        yield from _integers(arg, (i,))
    for name, arg in sample.kwargs:
        yield from _integers(arg, (name,))


def _integers(arg: Arg, path: tuple[int | str, ...]) -> Iterator[tuple[Integer, int]]:
    if isinstance(arg, tuple):
        for i, one in enumerate(arg):
            yield from _integers(one, (*path, i))
    elif isinstance(arg, int) and not isinstance(arg, bool):
        yield Integer(path), arg


def places(sample: Sample) -> Iterator[tuple[Place, int]]:
    """Yield the extents and the integers of a sample, with their sizes."""
    yield from extents(sample)
    yield from integers(sample)


def resized(sample: Sample, sizes: Mapping[Place, int]) -> Sample:
    """Return the sample with other sizes. Outputs become empty, so that the call resizes them. Fills do not change."""
    shapes = {slot.index: list(slot.shape) for slot in sample.tensors}
    numbers: dict[tuple[int | str, ...], int] = {}
    for place, n in sizes.items():
        if isinstance(place, Extent):
            shapes[place.slot][place.dim] = n
        else:
            numbers[place.path] = n
    slots = [replace(s, shape=tuple(shapes[s.index]) if s.pool else (0,)) for s in sample.tensors]
    by_name = {slot.name: slot for slot in slots}
    slots = [replace(s, shape=by_name[s.same_as].shape) if s.same_as else s for s in slots]
    return with_arguments(with_tensors(sample, slots), numbers.get)


def with_tensors(sample: Sample, slots: Iterable[TensorSlot]) -> Sample:
    """Return the sample with other slots in the same places. ``slots`` are in the order of their indices."""
    tensors = tuple(slots)
    return with_arguments(
        replace(sample, tensors=tensors),
        lambda _, arg: tensors[arg.index] if isinstance(arg, TensorSlot) else arg,
    )


def with_empty_outputs(sample: Sample, slots: Iterable[TensorSlot]) -> Sample:
    """Return :func:`with_tensors` with empty outputs (slots without values), so that the call resizes them."""
    return with_tensors(sample, (s if s.pool else replace(s, shape=(0,)) for s in slots))


Change = Callable[[tuple[int | str, ...], Arg], Arg]


def with_arguments(sample: Sample, change: Change) -> Sample:
    """Return the sample with each argument that is not a list changed; ``change`` gets its path and the argument."""
    args = tuple(_changed(arg, (i,), change) for i, arg in enumerate(sample.args))
    kwargs = tuple((name, _changed(arg, (name,), change)) for name, arg in sample.kwargs)
    return replace(sample, args=args, kwargs=kwargs)


def _changed(arg: Arg, path: tuple[int | str, ...], change: Change) -> Arg:
    if isinstance(arg, tuple):
        return tuple(_changed(one, (*path, i), change) for i, one in enumerate(arg))
    return change(path, arg)


def label(sample: Sample, places: Iterable[Place]) -> str:
    """Return a short name for places that change together: the name of the first place."""
    first = next(iter(places))
    if isinstance(first, Extent):
        return f"{sample.tensors[first.slot].name}.{first.dim}"
    return "arg" + ".".join(map(str, first.path))
