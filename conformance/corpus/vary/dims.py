"""Samples of four and more dimensions, some of which the call names; and samples of memory formats.

A recorded sample often has two dimensions, of which the call reduces one or both. So it is never tried how a kernel
treats dimensions between reduced ones. With many dimensions, a kernel may refuse the first ones, or omit those of size
1. A memory format needs four or five dimensions, and is refused for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, EnumArg, Sample
from conformance.corpus.vary.arguments import Other, names_dimensions, replaced
from conformance.corpus.vary.longer import deeper
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "variants"

RANK = 4
_FRONT = (5, 2, 3, 2, 1, 3, 2, 1)  # the sizes of the dimensions in front
_ONES = (1, 2, 1, 1)  # the same, where most of the named dimensions have one element


@dataclass(frozen=True, slots=True)
class _Named:
    """The dimensions to name in calls on tensors of a rank, and the sizes of the dimensions in front."""

    rank: int
    front: tuple[int, ...]
    lists: tuple[Arg, ...]  # for arguments that are lists
    integers: tuple[Arg, ...]  # for other arguments


_NAMED = (
    _Named(RANK, _FRONT, ((0, 2), (-1, 1), (0, 1, 3), (1, 2)), (1, -2)),
    _Named(5, _ONES, ((-5,), (-3,), (-5, 1)), (-5, -3)),
    _Named(6, _FRONT, ((0,), (0, 2, 4), (1, 3)), (0, 2)),
    _Named(9, _FRONT, ((0, -2),), (0,)),
)
_KEEP = "keepdim"
# The memory formats with their numbers of dimensions, and sizes for these dimensions.
_FORMATS = {"channels_last": 4, "channels_last_3d": 5}
_SIZES = (2, 3, 4, 5, 6)


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other dimensions, or memory formats, among its arguments."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    formals = [a for a in schema.arguments if names_dimensions(a)]
    for source in sources(samples, values):
        maker, turns = Maker(trials, values), Turns(source)
        for named in _NAMED if len(formals) == 1 else ():
            for deep in deeper(source, named.rank, named.front):
                for form, sample in _forms(deep, named, schema, formals[0]):
                    name = f"rank={named.rank}.{form}"
                    yield from turns.counted(maker.called(source, sample, name, turns.of(form), AXIS))
        for name, sample in _in_formats(source, schema):
            yield from turns.counted(maker.called(source, sample, name, turns.of(name), AXIS))


def _in_formats(source: Sample, schema: Any) -> Iterator[tuple[str, Sample]]:
    """Yield the calls with each memory format, on tensors with the number of dimensions that it needs."""
    formal = next((a for a in schema.arguments if "MemoryFormat" in str(a.real_type)), None)
    size = next((a for a in schema.arguments if a.name == "size"), None)
    for name, rank in _FORMATS.items() if formal is not None else ():
        if size is not None:
            deep = [replaced(source, schema, Other(size, _SIZES[:rank]))]
        elif max((len(s.shape) for s in source.tensors), default=0) == rank:
            deep = [source]
        else:
            deep = list(deeper(source, rank, _SIZES))
        for sample in deep:
            in_format = replaced(sample, schema, Other(formal, EnumArg("memory_format", name)))
            yield f"rank={rank}.memory_format={name}", in_format


def _forms(deep: Sample, named: _Named, schema: Any, formal: Any) -> Iterator[tuple[str, Sample]]:
    """Yield the calls of a sample with each choice of dimensions; with a ``keepdim`` argument, kept and removed."""
    dims = named.lists if "List[int]" in str(formal.type) else named.integers
    keep = next((a for a in schema.arguments if a.name == _KEEP), None)
    for turn, value in enumerate(dims):
        other = Other(formal, value)
        sample = replaced(deep, schema, other)
        if keep is None:
            yield other.name, sample
            continue
        for kept in (Other(keep, turn % 2 == 0), Other(keep, turn % 2 == 1)):
            yield f"{other.name}.{kept.name}", replaced(sample, schema, kept)
