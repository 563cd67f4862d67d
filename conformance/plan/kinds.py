"""Kinds of generated samples, so that the first few samples of an overload vary different things. Pure."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.places import places

#: The largest extent of each class of sizes. A kernel that is wrong beyond some size is wrong for all larger ones, so a
#: few classes are enough.
SIZES = (16, 1024, 65536)
#: The most dimensions, and the longest list, that kernels commonly have a fixed place for.
DIMENSIONS, LIST = 5, 8
#: Up to this number, float32 holds all integers.
EXACT = 2**24


def spread(samples: Iterable[Sample]) -> list[Sample]:
    """Return generated samples in turns, one of each kind. The order depends on names alone, not on positions."""
    by_kind: dict[Hashable, list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=_checksum):
        by_kind[kind_of(sample)].append(sample)
    turns = ((turn, _checksum(sample), sample) for of in by_kind.values() for turn, sample in enumerate(of))
    return [sample for *_, sample in sorted(turns, key=lambda each: each[:2])]


def kind_of(sample: Sample) -> Hashable:
    """Return a key for the variation of a generated sample, without its exact numbers."""
    if sample.axis == "sizes":
        return _sizes(sample)
    if sample.axis == "values":
        hard = tuple((slot.name, slot.fill) for slot in sample.tensors if slot.fill.startswith("hard"))
        return sample.raises, hard, tuple(_forms(sample))
    tensors = tuple((slot.dtype, slot.on_host, len(slot.shape)) for slot in sample.tensors)
    return sample.raises, sample.base, tensors, tuple(_forms(sample))


def _sizes(sample: Sample) -> Hashable:
    """Return the class of the largest size, whether there are many dimensions or long lists, and what is empty."""
    dimensions = max((len(slot.shape) for slot in sample.tensors), default=0)
    lists = max((len(arg) for arg in sample.args if isinstance(arg, tuple)), default=0)
    largest = max((n for _, n in places(sample)), default=0)
    return bisect_left(SIZES, largest), dimensions > DIMENSIONS, lists > LIST, _empty(sample)


def _empty(sample: Sample) -> str:
    """Return "end" if a list that has elements ends with an empty tensor, "tensor" if another one is empty, else "".

    A kernel that takes a whole list launches its last part behind the last tensor.
    """
    lists = [[s for s in arg if isinstance(s, TensorSlot) and s.pool] for arg in sample.args if isinstance(arg, tuple)]
    if any(of and not of[-1].numel and any(s.numel for s in of) for of in lists):
        return "end"
    return "tensor" if any(not slot.numel for slot in sample.tensors if slot.pool) else ""


def _forms(sample: Sample) -> Iterator[Hashable]:
    """Yield a key for each argument: its type, or the value of a flag or a word."""
    for arg in (*sample.args, *(arg for _, arg in sample.kwargs)):
        yield _form(arg)


def _form(arg: Arg) -> Hashable:
    if isinstance(arg, tuple):
        return tuple(_form(one) for one in arg)
    if arg is None or isinstance(arg, bool | str):
        return arg
    if isinstance(arg, int | float):
        return type(arg).__name__, arg < 0, abs(arg) > EXACT
    return type(arg).__name__


def _checksum(sample: Sample) -> int:
    return zlib.crc32(sample.name.encode())
