"""A sample whose arguments get values of one kind, limited to those that CPU accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from conformance.corpus import fills
from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, resized, with_tensors
from conformance.corpus.values import kind_of
from conformance.corpus.vary import arguments
from conformance.corpus.vary.fills import filled
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

AXIS = "values"
# The limits of the values, if CPU refuses some of them, such as a division by zero.
LIMITS = ("", "/nonzero", "/positive")
_OF_ONE_NUMBER = ("hard/all", "hard/last")


class Filling:
    """A sample of an overload, and the samples that make the same call with other values."""

    def __init__(self, source: Sample, overload: Overload, trials: Trials, values: HasValues) -> None:
        self.source = source
        self.schema = schema_of(call_of(overload.name))
        self.fixed = facts(overload.name).fixed
        self.trials = trials
        self.values = values
        self.dtypes = tuple(d for d in source.dtypes if not d.startswith("float8"))

    @cached_property
    def groups(self) -> list[Group]:
        """The dimensions of the source that change together."""
        return Maker(self.trials, self.values).groups(self.source, self.dtypes[0]) if self.dtypes else []

    def lengthened(self, group: Group, length: int) -> Sample | None:
        """Return the source with other sizes of a group, if it runs on CPU."""
        change = dict.fromkeys(group.places, length)
        candidates = filled(self.source, resized(self.source, change), change, self.values)
        ran = next(filter(None, (self.trials.run(sample, self.dtypes[0]) for sample in candidates)), None)
        return ran.sample if ran else None

    def made(self, large: Sample, kinds: dict[int, str], more: str = "", dtypes: tuple[str, ...] = ()) -> list[Sample]:
        """Return a sample for each limit that some dtypes need. ``more`` is a part of its name.

        ``dtypes`` are the dtypes to try; if empty, those of the source.
        """
        named = "x".join(large.tensors[i].name for i in kinds)
        taken = arguments.defined(dtypes or self.dtypes, more)
        name = f"{self.source.name}.hard={named}{more}"
        return list(limited(large, kinds, taken, lambda dtype: self._limit(large, kinds, dtype), name))

    def _limit(self, large: Sample, kinds: dict[int, str], dtype: str) -> str | None:
        """Return the first limit under which CPU accepts the values, or None if there is none."""
        if not all(fills.has(kind, large.tensors[i].dtype or dtype) for i, kind in kinds.items()):
            return None
        for limit in LIMITS if not any(kind.startswith(_OF_ONE_NUMBER) for kind in kinds.values()) else LIMITS[:1]:
            if ran := self.trials.run(with_fills(large, kinds, limit), dtype):
                held = {large.tensors[i].dtype or dtype for i in kinds}
                target = "" if limit else _integer_of(held, ran)
                return f"/{target}" if target else limit
        return None


def limited(
    sample: Sample, kinds: dict[int, str], dtypes: Iterable[str], limit_of: Callable[[str], str | None], name: str
) -> Iterator[Sample]:
    """Yield the sample with values of these kinds, by argument index: one for each limit that some dtypes have.

    ``limit_of`` returns the limit of a dtype, or None if CPU accepts the values under no limit. ``name`` is the name of
    the samples without the limit.
    """
    by_limit: dict[str, list[str]] = {}
    for dtype in dtypes:
        limit = limit_of(dtype)
        if limit is not None:
            by_limit.setdefault(limit, []).append(dtype)
    for limit, taken in by_limit.items():
        named = name + limit.replace("/", ".")
        yield replace(with_fills(sample, kinds, limit), name=named, dtypes=tuple(taken), axis=AXIS)


def slots_of(group: Group) -> set[int]:
    """Return the indices of the arguments that have a dimension of the group."""
    return {place.slot for place in group.places if isinstance(place, Extent)}


def with_fills(sample: Sample, kinds: dict[int, str], limit: str) -> Sample:
    """Return the sample with values of these kinds, by argument index."""
    slots = [replace(s, fill=kinds[s.index] + limit) if s.index in kinds else s for s in sample.tensors]
    mixed = ("hard/sparse" + limit, "hard/last")  # these also need stored values
    slots = [replace(s, source=s.source or s.numel) if s.fill.startswith(mixed) else s for s in slots]
    return with_tensors(sample, slots)


def _integer_of(held: set[str], ran: Ran) -> str:
    """Return the integer dtype that floats are converted to; "" if the results are of another kind."""
    floats = any(kind_of(dtype) in ("float", "complex") for dtype in held)
    return ran.dtypes[0] if floats and {kind_of(d) for d in ran.dtypes} == {"int"} else ""
