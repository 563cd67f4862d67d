"""Samples of images and volumes with many channels, which kernels with the channels innermost read in vectors."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import Extent, Place, with_tensors
from conformance.corpus.vary.sizes import AXIS, Maker
from conformance.corpus.vary.sources import Turns, sources, usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

# Shapes by their number of dimensions: with channels that do not fill whole vectors (images also have an odd number of
# pixels), and with channels that do.
SIZES = {4: ((2, 33, 5, 7), (3, 64, 9, 8)), 5: ((2, 33, 3, 5, 4), (2, 64, 3, 4, 5))}
# The channels to try if a call refuses these: a multiple of more numbers, and the smallest number that fills a vector.
_CHANNELS = (16, 8)
_BASE, _HALVES = "float32", ("bfloat16", "float16")
# Of the pointwise overloads that were recorded without images, one in this many gets images.
_ONE_IN = 3


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with many channels; none if it is composite on every device."""
    if overload.is_composite_implicit:
        return
    pointwise = "pointwise" in overload.tags
    maker = Maker(trials, values, pointwise=pointwise)
    floating = [s for s in samples if usable(s) and s.base == _BASE]
    images = [s for s in floating if _rank(s) in SIZES]
    for rank, of_rank in SIZES.items():
        whole = [s for s in images if _rank(s) == rank and min(_image(s).shape[1:]) > 1]
        for source in sources(whole or [s for s in images if _rank(s) == rank], values):
            yield from _with_channels(maker, source, of_rank, pointwise)
    if not images and (not pointwise or zlib.crc32(overload.name.encode()) % _ONE_IN == 0):
        for source in sources(floating, values):
            found = [sample for shape in SIZES[4] for sample in _as_image(maker, source, shape)]
            if found:
                yield from found
                return


def _with_channels(
    maker: Maker, source: Sample, shapes: Sequence[tuple[int, ...]], pointwise: bool
) -> Iterator[Sample]:
    for shape in shapes:
        found = list(_as_image(maker, source, shape)) if pointwise else []
        yield from found or _resized(maker, source, shape)


def _as_image(maker: Maker, source: Sample, shape: tuple[int, ...]) -> Iterator[Sample]:
    """Yield a sample of a pointwise op whose tensors of the highest rank are images. Tensors broadcast as before."""
    rank = _rank(source)
    if not 0 < rank <= len(shape):
        return
    long = {d for s in source.tensors for d, n in enumerate(reversed(s.shape), 1) if n > 1}
    slots = [replace(s, shape=_behind(s.shape, shape, rank, long)) for s in source.tensors]
    yield from maker.called(source, with_tensors(source, slots), _name(shape), _dtypes(source), AXIS)


def _behind(old: tuple[int, ...], shape: tuple[int, ...], rank: int, long: Collection[int]) -> tuple[int, ...]:
    """Return the new sizes of a tensor. A tensor of the highest rank gets all dimensions of ``shape``.

    A size of 1 is kept in the dimensions of ``long``, in which another tensor has a larger size. They are counted from
    the last dimension, which is 1.
    """
    front = shape[: len(shape) - rank] if len(old) == rank else ()
    last = zip(range(len(old), 0, -1), old, shape[len(shape) - len(old) :], strict=True)
    return (*front, *(1 if m == 1 and d in long else n for d, m, n in last))


def _resized(maker: Maker, source: Sample, shape: tuple[int, ...]) -> Iterator[Sample]:
    """Yield the sample with ``shape`` as the sizes of its first image, as far as they can change. The channels must."""
    image = _image(source)
    dtypes = _dtypes(source)
    of = {p: g for g in maker.groups(source, dtypes[0]) for p in g.places if isinstance(p, Extent)}
    groups = [of.get(Extent(image.index, dim)) for dim in range(len(shape))]
    if groups[1] is None:
        return
    rest: dict[Place, int] = {}
    alone = [s for s in source.tensors if s.pool and len(s.shape) == len(shape) and s.shape[0] == 1]
    batch: dict[Place, int] = {Extent(s.index, 0): shape[0] for s in alone}
    for dim in (0, *range(2, len(shape))):
        group = groups[dim]
        if group is not None and group is not groups[1]:
            rest |= {p: n for p in group.places for n in [shape[dim]] if p not in rest}
    for channels in (shape[1], *_CHANNELS):
        for beside in (rest | batch, rest, {}):
            change = beside | dict.fromkeys(groups[1].places, channels)
            found = list(maker.made(source, change, _name((shape[0], channels, *shape[2:])), dtypes))
            if found:
                yield from found
                return


def _name(shape: tuple[int, ...]) -> str:
    return "channels=" + "x".join(map(str, shape))


def _rank(sample: Sample) -> int:
    return max((len(s.shape) for s in sample.tensors if s.pool), default=0)


def _image(sample: Sample) -> TensorSlot:
    """Return the first tensor of the highest rank."""
    return next(s for s in sample.tensors if s.pool and len(s.shape) == _rank(sample))


def _dtypes(source: Sample) -> tuple[str, ...]:
    """Return the first dtype, and one of half precision."""
    halves = [d for d in _HALVES if d in source.dtypes]
    return tuple(dict.fromkeys((Turns(source).first, *halves[:1])))
