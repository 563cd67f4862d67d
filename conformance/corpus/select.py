"""Selection of a few diverse samples: each adds the most new features, and small samples are preferred."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.corpus.drafts import strip
from conformance.corpus.model import Arg, DtypeArg, EnumArg, Sample, TensorSlot

ELEMENTS_WORTH_A_FEATURE = 400


def most_different(samples: Sequence[Sample], most: int, at_least: int = 2) -> list[Sample]:
    """Return at most ``most`` samples, best first; fewer if no other adds a feature and ``at_least`` are selected.

    The first sample has tensors with many dimensions longer than one, because layouts differ only in these. At most a
    quarter of ``most``, rounded up, are empty. The result does not depend on the order of the samples.
    """
    left = [_Row(frozenset(features(s)), _elements(s), s) for s in sorted(samples, key=lambda s: s.name)]
    seen: set[Hashable] = set()
    chosen: list[_Row] = []
    while left and len(chosen) < most:
        best = max(left, key=lambda row: row.worth(seen) if chosen else row.ordinary())
        if not best.features - seen and len(chosen) >= at_least:
            break
        left.remove(best)
        seen |= best.features
        chosen.append(best)
        if sum(row.elements == 0 for row in chosen) * 4 >= most:
            left = [row for row in left if row.elements]
    return [row.sample for row in chosen]


@dataclass(frozen=True, slots=True)
class _Row:
    features: frozenset[Hashable]
    elements: int
    sample: Sample

    def worth(self, seen: set[Hashable]) -> tuple[float, int]:
        return len(self.features - seen) - self.elements / ELEMENTS_WORTH_A_FEATURE, -self.elements

    def ordinary(self) -> tuple[float, int]:
        long = sum(min(sum(n > 1 for n in s.shape), 3) for s in self.sample.tensors if s.numel)
        return long - self.elements / ELEMENTS_WORTH_A_FEATURE, -self.elements


def features(sample: Sample) -> Iterator[Hashable]:
    """Yield the features of a sample."""
    yield ("arguments", len(sample.args), tuple(k for k, _ in sample.kwargs))
    for slot in sample.tensors:
        yield (slot.name, "rank", len(slot.shape))
        yield (slot.name, "dtype", slot.dtype)
        yield (slot.name, "same as", slot.same_as)
        yield (slot.name, "elements", len(str(slot.numel)) if slot.numel > 1 else slot.numel)
        if len(slot.shape) > 1 and min(slot.shape) > 1:
            yield (slot.name, "no dimension of one", len(slot.shape))
    yield ("shapes alike", len({s.shape for s in sample.tensors}) == 1)
    yield ("ranks", tuple(len(s.shape) for s in sample.tensors[:4]))
    for position, arg in enumerate(sample.args):
        yield from _of_argument(position, arg)
    for name, arg in sample.kwargs:
        yield from _of_argument(name, arg)


def _of_argument(where: Hashable, arg: Arg) -> Iterator[Hashable]:
    if isinstance(arg, tuple):
        yield (where, "length", len(arg))
        yield (where, "kinds", tuple(sorted({str(_kind(a)) for a in arg})))
        return
    yield (where, _kind(arg))


def _kind(arg: Arg) -> Hashable:
    if isinstance(arg, (bool, str, DtypeArg, EnumArg)) or arg is None:
        return str(arg)
    if isinstance(arg, TensorSlot):
        return "tensor"
    if isinstance(arg, (int, float)):
        return _size_of(arg)
    return str(strip(arg))


def _size_of(number: float) -> str:
    if not math.isfinite(number):
        return str(number)
    whole = "whole" if float(number).is_integer() else "fraction"
    size = min(abs(number), 2)
    return f"{type(number).__name__} {whole} {'-' if number < 0 else ''}{int(size)}"


def _elements(sample: Sample) -> int:
    return sum(s.numel for s in sample.tensors)


def total(samples: Iterable[Sample]) -> int:
    """Return the number of pairs of a sample and a dtype."""
    return sum(len(s.dtypes) for s in samples)
