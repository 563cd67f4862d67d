"""Samples in which a size grows that is 1, or that equals another size by chance.

`sizes` changes equal sizes together. If a batch is as large as a number of groups, the two cannot change together, so
neither changes. Here, a size changes only with the same dimension of the other tensors, counted from the first or from
the last one, and with integers that are equal to it; or with the equal sizes of its own tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, Place, extents, label, places
from conformance.corpus.vary.sizes import GROUPS, Group, Maker
from conformance.corpus.vary.sources import Turns, sources, sources_of_other_ranks
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload

# The sizes to grow to: of one size alone, and of several sizes together, where no two are equal.
SIZES = (7, 34, 258)
TOGETHER = ((6, 10, 14, 22, 26), (22, 14, 10, 6, 4))
_PROBES = (2, 3)  # factors by which a size grows in a trial, plus 1 or not
_MOST_CANDIDATES = 8  # ways in which to change a size


@dataclass(frozen=True, slots=True)
class _Split:
    """Sizes that change together, to multiples of ``step``: for example, channels are a multiple of groups."""

    places: tuple[Place, ...]
    step: int


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples in which a size that is 1 or equal by chance grows; none if the op is pointwise or composite."""
    if overload.is_composite_implicit or "pointwise" in overload.tags:
        return
    chance = _Chance(Maker(trials, values), trials)
    for source in (*sources(samples, values), *sources_of_other_ranks(samples, values)):
        yield from chance.of(source)


class _Chance:
    """A maker of the samples, from one source at a time."""

    def __init__(self, maker: Maker, trials: Trials) -> None:
        self._maker = maker
        self._trials = trials

    def of(self, source: Sample) -> Iterator[Sample]:
        """Yield samples in which one size grows that is in no group of `sizes`, then samples with all sizes at once."""
        turns = Turns(source)
        free = self._maker.groups(source, turns.first)[: GROUPS[source.base]]
        split = list(self._split(source, turns.first, free))
        for one in split:
            for n in SIZES:
                name = f"{label(source, one.places)}={n * one.step}.split"
                change = dict.fromkeys(one.places, n * one.step)
                yield from turns.counted(self._maker.made(source, change, name, turns.dtypes()))
        every = [*split, *(_Split(group.places, 1) for group in free)]
        for together in TOGETHER if split and len(every) > 1 else ():
            pairs = list(zip(every, together, strict=False))
            change = {p: n * one.step for one, n in reversed(pairs) for p in one.places}
            name = "split=" + "x".join(str(n * one.step) for one, n in pairs)
            yield from turns.counted(self._maker.made(source, change, name, turns.dtypes()))

    def _split(self, source: Sample, dtype: str, free: Sequence[Group]) -> Iterator[_Split]:
        taken = {place for group in free for place in group.places}
        for place, n in extents(source):
            if place not in taken and n:
                for together in islice(_candidates(source, place, n), _MOST_CANDIDATES):
                    if step := self._step(source, together, n, dtype):
                        taken |= set(together)
                        yield _Split(together, step)
                        break

    def _step(self, source: Sample, together: Sequence[Place], n: int, dtype: str) -> int:
        """Return a number whose multiples the sizes can be, 1 or ``n``; 0 if the sizes cannot change."""
        for more, step in ((1, 1), (0, n)):
            if all(self._takes(source, dict.fromkeys(together, factor * n + more), dtype) for factor in _PROBES):
                return step
        return 0

    def _takes(self, source: Sample, change: dict[Place, int], dtype: str) -> bool:
        """Return whether CPU accepts the sizes, and torch accepts them for tensors without memory.

        Not every CPU kernel checks that sizes agree. If torch refuses the source without memory, only CPU decides.
        """
        found = next(self._maker.made(source, change, "", (dtype,)), None)
        refuses = self._trials.raises_without_memory
        return found is not None and (not refuses(found, dtype) or refuses(source, dtype))


def _candidates(source: Sample, place: Extent, n: int) -> Iterator[tuple[Place, ...]]:
    """Yield the places that may have to change together, in the order in which to try them."""
    equal = [p for p, size in places(source) if size == n and p != place]
    numbers: list[Place] = [p for p in equal if not isinstance(p, Extent)]
    others = [p for p in equal if isinstance(p, Extent)]
    first = [p for p in others if p.dim == place.dim and p.slot != place.slot]
    last = [p for p in others if _from_last(source, p) == _from_last(source, place) and p.slot != place.slot]
    own = [p for p in others if p.slot == place.slot]
    seen = set()
    extras: list[list[Place]] = [[], *([number] for number in numbers), numbers]
    for extra in extras:
        for some in (first, last, own):
            together: tuple[Place, ...] = (place, *some, *extra)
            if together not in seen:
                seen.add(together)
                yield together


def _from_last(source: Sample, place: Extent) -> int:
    return place.dim - len(source.tensors[place.slot].shape)
