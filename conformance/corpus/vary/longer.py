"""Samples with longer lists of tensors, and with more dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.places import with_tensors
from conformance.corpus.vary.trial import MOST_ELEMENTS

LENGTHS = (5, 9, 33, 70)  # of lists of tensors
RANKS = (6, 9)
_INDEXED = 6, 5  # a rank, and the length of lists that have an element for each of its dimensions but one


def longer_or_deeper(source: Sample) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with longer lists, with more dimensions, and with both. Its tensors need new fills."""
    yield from longer(source)
    yield from _deeper(source)
    yield from _longer_and_deeper(source)


def longer(source: Sample, wanted: Sequence[int] = LENGTHS) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with longer lists of tensors. Other lists of the same length become longer too."""
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
    """Yield the sample with more dimensions in front, in its tensors of the highest rank."""
    for wanted in RANKS:
        yield from ((sample, f"rank={wanted}") for sample in deeper(source, wanted, (2, 1, 3, 1, 2, 1, 1, 2, 1)))


def deeper(source: Sample, wanted: int, front: tuple[int, ...]) -> Iterator[Sample]:
    """Yield the sample with ``wanted`` dimensions, by the first sizes of ``front``; none if it has as many, or 0."""
    rank = max((len(s.shape) for s in source.tensors if s.pool), default=0)
    if 0 < rank < wanted:
        yield _with_front(source, rank, front[: wanted - rank])


def _with_front(source: Sample, rank: int, front: tuple[int, ...]) -> Sample:
    slots = [replace(s, shape=(*front, *s.shape)) if len(s.shape) == rank else s for s in source.tensors]
    return with_tensors(source, slots)


def _longer_and_deeper(source: Sample) -> Iterator[tuple[Sample, str]]:
    """Yield the sample with a longer list of tensors, each of which needs a dimension, such as a list of indices.

    Each dimension in front is as large as the largest one, so that an index of one dimension is valid in all.
    """
    wanted, length = _INDEXED
    shapes = [s.shape for s in source.tensors if s.pool and s.shape]
    rank = max(map(len, shapes), default=0)
    largest = max((n for shape in shapes for n in shape), default=0)
    if 0 < rank < wanted and largest**wanted <= MOST_ELEMENTS:
        deeper = _with_front(source, rank, (largest,) * (wanted - rank))
        for sample, name in longer(deeper, (length,)):
            yield sample, f"rank={wanted}.{name}"
