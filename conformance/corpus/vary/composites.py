"""A few samples of each composite overload, for backends that have a kernel of their own for it.

On other backends, a composite calls other overloads, which have their own samples. A kernel that a backend registers
for ``scaled_dot_product_attention`` or ``linear`` calls none of them, and the recorded samples of composites are tiny.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle, islice

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Place, label
from conformance.corpus.vary import broadcasting, counts, grids, hard_values, large, variants
from conformance.corpus.vary.sizes import LARGE, TOGETHER, Group, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

SIZES = (1031, 65537)  # past the usual tiles, and past 65,535 blocks
SOURCES = 2  # of samples of other sizes; all other samples are made from the first source
GROUPS = 4  # of sizes of a source
FORMS = 8  # of the first source: another argument, and one large size
VALUES, VARIANTS = 16, 16
HALVES = ("bfloat16", "float16")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield a few samples of other sizes, values and arguments of a composite overload."""
    varied = sources(samples, values)
    if not (overload.is_composite_implicit and varied):
        return
    alike = [s for s in varied if s.base == varied[0].base][:SOURCES]
    plain = replace(overload, is_composite_implicit=False)  # the other rules yield nothing for composites
    found = chain(
        *(_sizes(source, trials, values) for source in alike),
        _forms(varied[0], plain, trials, values),
        grids.generate(plain, varied[:1], trials, values),
        counts.generate(plain, varied[:1], trials, values),
        broadcasting.generate(plain, [s for s in samples if s.base == varied[0].base], trials, values),
        islice(hard_values.generate(plain, varied[:1], trials, values), VALUES),
        islice(variants.generate(plain, varied[:1], trials, values), VARIANTS),
    )
    tried_anyway = {sample.name for sample in variants.generate(overload, samples, trials, values)}
    kept = (sample for sample in found if sample.name not in tried_anyway and has_dtypes_of(alike, sample))
    yield from (replace(sample, own_kernel=True) for sample in kept)


def has_dtypes_of(sources: Sequence[Sample], sample: Sample) -> bool:
    """Return whether each tensor of a sample has a dtype that it has in a source.

    A composite accepts and promotes the dtypes that its overloads accept; a backend's own kernel need not.
    """
    given = {(slot.name, slot.dtype) for source in sources for slot in source.tensors}
    named = {name for name, _ in given}
    return all((slot.name, slot.dtype) in given for slot in sample.tensors if slot.name in named)


def _sizes(source: Sample, trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield the sample with one size at a time large or 0, and with several large sizes at once."""
    maker = Maker(trials, values)
    dtypes = _in_turns(source)
    groups = maker.groups(source, Turns(source).first)
    for at, group in enumerate(groups[:GROUPS]):
        for size in (SIZES[0], SIZES[1], 0) if at in (0, len(groups) - 1) else SIZES[:1]:
            name = f"{label(source, group.places)}={size}"
            yield from maker.made(source, _change(groups, group, size), name, next(dtypes))
    for sizes in TOGETHER[:2] if groups else ():
        change = {p: n for g, n in zip(groups, sizes, strict=False) for p in g.places}
        name = "all=" + "x".join(map(str, sizes[: len(groups)]))
        yield from maker.made(source, change, name, next(dtypes))


def _forms(source: Sample, overload: Overload, trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield the sample with another argument, and with the first or the last size large, in turns."""
    maker = Maker(trials, values)
    dtypes = _in_turns(source)
    schema = schema_of(call_of(overload.name))
    groups_of = {_ranks(source): maker.groups(source, Turns(source).first)}
    for turn, (form, sample) in enumerate(large.forms(source, schema, pointwise="pointwise" in overload.tags)[:FORMS]):
        if _ranks(sample) not in groups_of:
            groups_of[_ranks(sample)] = maker.groups(sample, Turns(source).first)
        groups = groups_of[_ranks(sample)]
        for group in groups[-1:] if turn % 2 else groups[:1]:
            name = f"{form}.{label(sample, group.places)}={SIZES[0]}"
            yield from maker.made(sample, _change(groups, group, SIZES[0]), name, next(dtypes))


def _in_turns(source: Sample) -> Iterator[tuple[str, ...]]:
    """Yield the dtypes of one sample after another: in turns, the first dtype of the source and its half dtypes."""
    first = Turns(source).first
    return cycle([(d,) for d in (first, *HALVES) if d in source.dtypes])


def _ranks(sample: Sample) -> tuple[tuple[str, int], ...]:
    return tuple((slot.name, len(slot.shape)) for slot in sample.tensors)


def _change(groups: Sequence[Group], group: Group, size: int) -> dict[Place, int]:
    """Return sizes in which one group is large. Beside a size above ``LARGE``, the other sizes are at most 2."""
    beside = {p: min(g.size, 2) for g in groups if g != group for p in g.places} if size > LARGE else {}
    return {**beside, **dict.fromkeys(group.places, size)}
