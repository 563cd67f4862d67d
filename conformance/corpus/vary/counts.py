"""Samples in which an integer argument counts many elements of a long row, such as the ``k`` of ``topk``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Integer, Place, integers, label
from conformance.corpus.vary.arguments import names_dimensions
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

# Lengths of rows with counts: a count past the usual tiles, heaps and warps, and a count of a whole row.
LENGTHS = ((1025, 500), (67, 67))
_MOST = 3  # sizes, and integers, of a sample


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with each pair of a size and an integer in ``LENGTHS``."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    maker = Maker(trials, values)
    for source in sources(samples, values):
        turns = Turns(source)
        groups = maker.groups(source, turns.first) if any(counts(source, schema)) else []
        tied = {place for group in groups for place in group.places}
        for number in [n for n in counts(source, schema) if n not in tied][:_MOST]:
            for group, (length, count) in product(groups[:_MOST], LENGTHS):
                change: dict[Place, int] = {**dict.fromkeys(group.places, length), number: count}
                name = f"{label(source, group.places)}={length}.{label(source, [number])}={count}"
                yield from maker.made(source, change, name, turns.of(name))


def counts(source: Sample, schema: Any) -> Iterator[Integer]:
    """Yield the integers among the arguments of a sample that are neither dimensions nor members of an enumeration."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    by_name = {a.name: a for a in schema.arguments}
    for place, _ in integers(source):
        at = place.path[0]
        formal = by_name[at] if isinstance(at, str) else positional[at]
        if str(formal.real_type) == "int" and not names_dimensions(formal):
            yield place
