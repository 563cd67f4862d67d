"""Samples of four dimensions, called with several of them, or with one in the middle.

A recorded sample often has two dimensions. All of them are then reduced, or one, and what lies between those that are
reduced is never tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample
from conformance.corpus.vary.arguments import Other, names_dimensions, replaced
from conformance.corpus.vary.sizes import Maker, Turns, deeper, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "variants"

RANK = 4
_FRONT = (5, 2, 3)  # the sizes of the dimensions in front
_OF_LISTS: tuple[Arg, ...] = ((0, 2), (-1, 1), (0, 1, 3), (1, 2))
_OF_INTEGERS: tuple[Arg, ...] = (1, -2)
_KEEP = "keepdim"


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other dimensions among its arguments."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    formals = [a for a in schema.arguments if names_dimensions(a)]
    for source in sources(samples, values) if len(formals) == 1 else ():
        maker, turns = Maker(trials, values), Turns(source)
        for deep in deeper(source, RANK, _FRONT):
            for name, sample in _forms(deep, schema, formals[0]):
                yield from turns.counted(maker.called(sample, f"rank={RANK}.{name}", turns.of(name), AXIS))


def _forms(deep: Sample, schema: Any, formal: Any) -> Iterator[tuple[str, Sample]]:
    """Yield the calls of a sample with each choice of dimensions; with several, kept and removed in turns."""
    dims = _OF_LISTS if "List[int]" in str(formal.type) else _OF_INTEGERS
    keep = next((a for a in schema.arguments if a.name == _KEEP), None)
    for turn, value in enumerate(dims):
        other = Other(formal, value)
        sample = replaced(deep, schema, other)
        if keep is None:
            yield other.name, sample
            continue
        for kept in (Other(keep, turn % 2 == 0), Other(keep, turn % 2 == 1)):
            yield f"{other.name}.{kept.name}", replaced(sample, schema, kept)
