"""Samples of further configurations, in which all sizes are past a tile at once.

`sizes` varies only a few samples of an overload, and `large` and `grids` change one argument of these samples. Other
configurations are recorded with a few elements only, such as a window with a stride and a padding, rounded up, or an
average with weights. A kernel may have a separate loop for them that goes wrong past a tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, ComplexArg, Sample, TensorSlot
from conformance.corpus.vary.arguments import Other, by_name, names_dimensions, others, replaced, selects
from conformance.corpus.vary.companions import companions
from conformance.corpus.vary.grids import grid
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources, usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

# By the number of sizes that can change, in their order: mostly past a tile of 32, except for sizes of likely batches.
SIZES = {1: (1031,), 2: (261, 135), 3: (19, 133, 67), 4: (3, 35, 67, 37), 5: (2, 3, 35, 37, 19)}
MOST = 12  # configurations of an overload
_MANY = 3  # larger numbers, for example of a stride, count as this one
_SOURCES = 3  # samples in which a flag is changed, until one runs


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield a sample of each configuration that `sizes` does not vary; none if the overload is composite."""
    if overload.is_composite_implicit:
        return
    maker = Maker(trials, values, pointwise="pointwise" in overload.tags)
    schema = schema_of(call_of(overload.name))
    varied = sources(samples, values)
    recorded = _recorded(samples, varied, schema, values)
    for sample in recorded[:MOST]:
        yield from _grown(maker, sample)
    every = [s for s in samples if usable(s)]
    for forms in _turned([*varied, *recorded], every, schema):
        turned = forms[:_SOURCES]
        beside = (form for one in turned for form in _beside(one, trials, schema))
        tried = (list(_grown(maker, form)) for form in chain(turned, beside))
        yield from next(filter(None, tried), [])


def _grown(maker: Maker, sample: Sample) -> Iterator[Sample]:
    """Yield the sample with all sizes past a tile, in its first dtype and another one."""
    turns = Turns(sample)
    groups = maker.groups(sample, turns.first)
    if groups:
        yield from grid(maker, sample, groups, SIZES[min(len(groups), max(SIZES))], turns.of("grid"))


def _recorded(samples: Sequence[Sample], varied: Sequence[Sample], schema: Any, values: HasValues) -> list[Sample]:
    """Return a sample of each recorded configuration that no sample in ``varied`` has."""
    bases, of_sizes = {s.base for s in varied}, {configuration(sample, schema) for sample in varied}
    alike: dict[object, list[Sample]] = {}
    for sample in samples:
        if sample.base in bases and usable(sample) and any(s.pool and s.numel > 1 for s in sample.tensors):
            alike.setdefault(configuration(sample, schema), []).append(sample)
    return [sources(of, values)[0] for key, of in alike.items() if key not in of_sizes]


def configuration(sample: Sample, schema: Any) -> tuple[object, ...]:
    """Return a key for the kernel that a sample selects.

    It has flags, words, small numbers, kinds of dimensions, and the tensors that are given.
    """
    given = _with_defaults(sample, schema)
    rank = max((len(s.shape) for s in sample.tensors), default=0)
    formals = [a for a in schema.arguments if not (a.is_out or str(a.type).endswith("number"))]
    return tuple(_form(given[a.name], rank if names_dimensions(a) else None) for a in formals)


def _form(arg: Arg, rank: int | None) -> object:
    """Return an argument without its exact numbers. With a ``rank``, a dimension is "first", "last" or "other"."""
    if isinstance(arg, (list, tuple)):
        forms = tuple(_form(one, rank) for one in arg)
        return tuple(dict.fromkeys(forms)) if any(isinstance(one, TensorSlot) for one in arg) else forms
    if isinstance(arg, (TensorSlot, float, ComplexArg)):
        return type(arg)
    if isinstance(arg, int) and not isinstance(arg, bool):
        if rank is None:
            return max(-1, min(arg, _MANY))
        return {0: "first", rank - 1: "last"}.get(arg % max(rank, 1), "other")
    return arg


def _with_defaults(sample: Sample, schema: Any) -> dict[str, Arg]:
    defaults = {a.name: a.default_value if a.has_default_value() else None for a in schema.arguments}
    return defaults | by_name(sample, schema)


def _turned(sources: Sequence[Sample], recorded: Sequence[Sample], schema: Any) -> Iterator[list[Sample]]:
    """Yield, for each flag, word or mode that no recorded sample has, the sources changed to have it."""
    seen = {(name, repr(arg)) for sample in recorded for name, arg in _with_defaults(sample, schema).items()}
    wanted: dict[str, list[tuple[Sample, Other]]] = {}
    for source in sources:
        fixed = facts(source.overload).fixed
        for other in others(source, schema, pointwise=False):
            new = other.formal.name not in fixed and (other.formal.name, repr(other.value)) not in seen
            if new and selects(other):
                wanted.setdefault(other.name, []).append((source, other))
    for of in wanted.values():
        yield [_named(source, other.name, replaced(source, schema, other)) for source, other in of]


def _beside(turned: Sample, trials: Trials, schema: Any) -> Iterator[Sample]:
    """Yield the first other form of tensors with which CPU accepts a sample that it refuses with an error."""
    dtype = Turns(turned).first
    for name, form in companions(turned, schema) if trials.raises(turned, dtype) else ():
        if trials.run(form, dtype):
            yield _named(turned, name, form)
            return


def _named(source: Sample, name: str, sample: Sample) -> Sample:
    return replace(sample, name=f"{source.name}.{name}")
