"""Samples of calls that add up their writes, with indices that name one element many times.

If either of two writes to an element may win, generated indices are distinct. With ``accumulate`` or ``reduce``, and in
ops that always add up, every write counts. Then a kernel that sorts the indices has segments longer than a block, and a
kernel that uses atomic additions has many of them at one address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, Place, label
from conformance.corpus.vary.arguments import Other, by_name, replaced
from conformance.corpus.vary.fills import indexes
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.sources import Turns, sources, usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

AXIS = "sizes"

# Numbers of indices: past a block, and past 65,535.
SIZES = (1031, 65537)
# Indices that all name one element, one of three elements at random, and each of three elements in a run.
FILLS = ("below/1", "below/3", "runs/3")
_GROUPS = 2  # of sizes of one source
_VALUES = ("source", "src", "values")  # names of the arguments whose values are written at the indices
# The order of the factors decides whether a product is finite.
_PRODUCTS = ("prod", "multiply")
_REDUCTIONS = ("sum", "add", "mean", "amax", "amin")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload that adds up, or can add up, its writes at indices."""
    schema = schema_of(call_of(overload.name))
    if overload.is_composite_implicit or not any(a.name in _VALUES for a in schema.arguments):
        return
    maker = Maker(trials, values, repeats=True)
    adding = [form for s in samples if usable(s) and any(map(indexes, s.tensors)) for form in _adding(s, schema)]
    for source in sources(adding, values):
        turns = Turns(source)
        groups = [g for g in maker.groups(source, turns.first) if _of_index(source, g)]
        for group in groups[:_GROUPS]:
            for size in SIZES:
                for fill in FILLS:
                    yield from turns.counted(_repeated(maker, source, (group, size, fill), turns.dtypes()))
                for form in _reductions(source, schema):
                    yield from turns.counted(_repeated(maker, form, (group, size, FILLS[-1]), turns.dtypes()))


def _adding(sample: Sample, schema: Any) -> list[Sample]:
    """Return the sample if it adds up, or the sample with its flag set; none if one write may win over another."""
    given = by_name(sample, schema)
    if given.get("reduce") in _PRODUCTS:
        return []
    flag = next((a for a in schema.arguments if a.name == "accumulate"), None)
    if flag is not None and not given.get("accumulate"):
        other = Other(flag, True)
        return [replace(replaced(sample, schema, other), name=f"{sample.name}.{other.name}")]
    return [] if facts(sample.overload).last_wins and flag is None and given.get("reduce") is None else [sample]


def _reductions(source: Sample, schema: Any) -> Iterator[Sample]:
    """Yield the sample with the other reductions whose results do not depend on the order of the elements."""
    given = by_name(source, schema).get("reduce")
    for formal in schema.arguments if isinstance(given, str) else ():
        for word in _REDUCTIONS if formal.name == "reduce" else ():
            if word != given:
                other = Other(formal, word)
                yield replace(replaced(source, schema, other), name=f"{source.name}.{other.name}")


def _of_index(source: Sample, group: Group) -> bool:
    """Return whether a group of sizes has a size of an index that is only read."""
    read = {s.index for s in source.tensors if indexes(s) and not s.written}
    return any(isinstance(p, Extent) and p.slot in read for p in group.places)


def _repeated(maker: Maker, source: Sample, what: tuple[Group, int, str], dtypes: tuple[str, ...]) -> Iterator[Sample]:
    """Yield the sample with more indices, filled by a fill. If it does not run, the other sizes become small."""
    group, size, fill = what
    changes = (dict.fromkeys(group.places, size), _beside(source, group) | dict.fromkeys(group.places, size))
    name = f"{label(source, group.places)}={size}.{fill.replace('/', '')}"
    for change in changes:
        indices = {s.index: fill for s in source.tensors if indexes(s)}
        found = list(maker.made_with(source, change, indices, name, dtypes))
        if found:
            yield from found
            return


def _beside(source: Sample, group: Group) -> dict[Place, int]:
    """Return sizes of two for the other dimensions of the tensors that grow."""
    grown = {p.slot for p in group.places if isinstance(p, Extent)}
    return {
        Extent(s.index, d): 2
        for s in source.tensors
        for d, n in enumerate(s.shape)
        if s.index in grown and n > 2 and Extent(s.index, d) not in group.places
    }
