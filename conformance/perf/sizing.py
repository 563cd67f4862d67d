"""Samples of a given number of elements. All free sizes grow by one factor, which depends on no measured time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Place, extents, resized
from conformance.corpus.values import kind_of
from conformance.corpus.vary.fills import filled
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Ran, Trials
from conformance.perf.model import Size
from conformance.perf.sides import leaves, side
from conformance.perf.work import flops_of

MOST_BYTES = 256 << 20  # of the arguments and results of a case
MOST_FLOPS = 3e8  # of a call, so that a slow matrix product ends in seconds
_STEP = 2  # the factor at which the growth of a sample is measured
_TRIES = 6  # samples of an overload
_MOST_TENSORS = 8  # of a sample whose sizes can grow: the sizes that have to agree are found by trying combinations


class Unsuitable(Exception):
    """No sample can be called repeatedly at the size. The message says why."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a call: its elements, bytes and operations."""

    elements: int  # of the largest argument or result
    bytes: int  # of all of them
    flops: int  # 0 where torch has no formula


class Sizer:
    """The search for samples at sizes. It makes calls on CPU in this process, which may die of them."""

    def __init__(self, values: HasValues, dtype: str) -> None:
        self.values = values
        self._dtype = dtype
        self._groups: dict[str, list[Group]] = {}

    def at(self, samples: Sequence[Sample], size: Size) -> Sample:
        """Return the first sample that can be scaled to a size. Raises Unsuitable."""
        found = suitable(samples, self._dtype)
        if not found:
            raise Unsuitable(f"no sample runs in {self._dtype}")
        why = Unsuitable("")
        for sample in found[:_TRIES]:
            try:
                return self._scaled(sample, size)
            except Unsuitable as e:
                why = e
            except (NotImplementedError, RuntimeError, TypeError, ValueError) as e:
                why = Unsuitable(f"values of its sample cannot be made: {e}")  # of float8, for example
        raise why

    def _scaled(self, source: Sample, size: Size) -> Sample:
        own = self.extent(source)
        if own is None:
            raise Unsuitable("CPU refuses to repeat the call")
        if _near(own.elements, size.elements):
            return source
        for groups in self._choices(source):
            if found := self._grown(source, groups, own, size):
                return found
        raise Unsuitable(f"no free size takes it from {own.elements} to about {size.elements} elements")

    def _choices(self, source: Sample) -> Iterator[tuple[Group, ...]]:
        """Yield the free sizes that may grow together: all of them, then each alone."""
        groups = self._free(source)
        if groups:
            yield tuple(groups)
        if len(groups) > 1:
            yield from ((group,) for group in groups)

    def _free(self, source: Sample) -> list[Group]:
        """Return the free sizes of a sample. They are searched for once per sample. Raises Unsuitable."""
        tensors = sum(bool(slot.pool) for slot in source.tensors)
        if tensors > _MOST_TENSORS:
            raise Unsuitable(f"its sample has {tensors} tensors, too many to find the sizes that have to agree")
        if source.name not in self._groups:
            self._groups[source.name] = Maker(_Trials(self), self.values).groups(source, self._dtype)
        return self._groups[source.name]

    def _grown(self, source: Sample, groups: tuple[Group, ...], own: Extent, size: Size) -> Sample | None:
        """Return the sample with these sizes multiplied by a factor; None if CPU refuses it, or it misses the size."""
        step = self._resized(source, groups, _STEP)
        more = self.extent(step) if step else None
        if more is None or more.elements <= own.elements:
            return None
        grown = self._resized(source, groups, factor(own, more, size.elements))
        found = self.extent(grown) if grown else None
        return grown if found and _reaches(found, size) else None

    def _resized(self, source: Sample, groups: tuple[Group, ...], by: float) -> Sample | None:
        change: dict[Place, int] = {p: max(1, round(g.size * by)) for g in groups for p in g.places}
        name = f"{source.name}*{by:.4g}"
        for sample in filled(source, resized(source, change), change, self.values):
            if self.runs(sample):
                return replace(sample, name=name)
        return None

    def runs(self, sample: Sample) -> bool:
        """Return whether the call runs on CPU without an error."""
        try:
            side(sample, self._dtype, self.values)()
        except Exception:  # noqa: BLE001 - that it raised is the answer
            return False
        return True

    def extent(self, sample: Sample) -> Extent | None:
        """Return the extent of the call, None if the call raises on CPU, or changes the metadata of its arguments."""
        try:
            call = side(sample, self._dtype, self.values)
            call()
            before = call.metadata()
            result = leaves(call())
            flops = flops_of(call) or 0
        except Exception:  # noqa: BLE001 - that it raised is the answer
            return None
        if call.metadata() != before:
            return None
        sizes = [t.numel() * t.element_size() for t in (*call.tensors, *result)]
        elements = max((t.numel() for t in (*call.tensors, *result)), default=0)
        return Extent(elements, sum(sizes), flops)


class _Trials(Trials):
    """Trials of one plain call."""

    def __init__(self, sizer: Sizer) -> None:
        super().__init__(sizer.values, timed=False)
        self._sizer = sizer

    def run(self, sample: Sample, dtype: str) -> Ran | None:
        """Return that the call ran; None if CPU refuses it."""
        del dtype
        return Ran(sample, (), ()) if self._sizer.runs(sample) else None


def suitable(samples: Sequence[Sample], dtype: str) -> list[Sample]:
    """Return the samples that run in a dtype, the preferred ones first.

    Samples made for the dtype's kind come first. Among these, those whose sizes differ least come first, because they
    grow into squares and cubes.
    """
    found = [s for s in samples if usable(s) and dtype in s.dtypes]
    return sorted(
        found, key=lambda s: (kind_of(s.base) != kind_of(dtype), _aspect(s), _shapes(s), -_largest(s), s.name)
    )


def _aspect(sample: Sample) -> float:
    """Return the largest size over the smallest; infinity for samples with an empty tensor, or with numbers alone."""
    sizes = [n for _, n in extents(sample)]
    smallest = min(sizes, default=0)
    return max(sizes) / smallest if smallest else math.inf


def _shapes(sample: Sample) -> int:
    """Return how many shapes the tensors have: more than one if some are broadcast, or are indices or masks."""
    return len({s.shape for s in sample.tensors if s.pool})


def _largest(sample: Sample) -> int:
    return max((s.numel for s in sample.tensors if s.pool), default=0)


def factor(own: Extent, more: Extent, elements: int) -> float:
    """Return the factor at which a sample has a number of elements, within the bounds of bytes and operations.

    ``own``: the extent of the sample. ``more``: its extent at the factor :data:`_STEP`. An extent is taken to grow as a
    power of the factor.
    """
    bounds: list[tuple[int, int, float]] = [
        (own.elements, more.elements, elements),
        (own.bytes, more.bytes, MOST_BYTES),
    ]
    bounds += [(own.flops, more.flops, MOST_FLOPS)] if own.flops and more.flops > own.flops else []
    return min(_reach(*bound) for bound in bounds if bound[1] > bound[0] > 0)


def _reach(own: float, more: float, bound: float) -> float:
    power = math.log(more / own, _STEP)
    return float((bound / own) ** (1 / power))


def _near(elements: int, wanted: int) -> bool:
    return wanted / 4 <= elements <= wanted * 4


def _reaches(found: Extent, size: Size) -> bool:
    """Return whether a sample is about as large as wanted, or as the bound of operations allows."""
    return _near(found.elements, size.elements) or found.flops > MOST_FLOPS / 4
