"""Samples in which all sizes are past a tile at once.

A grid with one row or one column of tiles does not show whether a kernel exchanges rows and columns, nor whether a tile
of the second column begins where the tile of the first column ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.vary.arguments import others, replaced
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

AXIS = "sizes"

# By the number of sizes that can change, in their order: each is more than one tile of 128 or 64, within the limit of
# elements of a sample. The first of four sizes is mostly a batch, and so are the first two of five. The last shapes of
# these are images of few channels, with more elements each than the images of the other shapes.
SIZES = {
    2: ((521, 515), (1031, 290)),
    3: ((300, 290, 280), (1100, 40, 270)),
    4: ((5, 140, 150, 130), (37, 35, 39, 36), (2, 3, 261, 135)),
    5: ((2, 3, 133, 131, 67), (2, 35, 37, 36, 38), (2, 2, 19, 67, 37)),
}
_PARTS = (8, 5, 3)  # eighths of these sizes
_FLAGS = 2  # to change, each with the first sizes only
_BASES = ("float32", "int64")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload that is not pointwise, with unchanged arguments and with one flag changed."""
    if overload.is_composite_implicit or "pointwise" in overload.tags:
        return
    maker = Maker(trials, values)
    for source in sources(samples, values):
        if source.base in _BASES:
            turns = Turns(source)
            for turn, sample in enumerate(_forms(source)):
                groups = maker.groups(sample, turns.first)
                for sizes in SIZES.get(min(len(groups), max(SIZES)), ())[: 1 if turn else None]:
                    yield from turns.counted(grid(maker, sample, groups, sizes, turns.dtypes()))


def grid(
    maker: Maker, sample: Sample, groups: Sequence[Group], sizes: Sequence[int], dtypes: tuple[str, ...]
) -> Iterator[Sample]:
    """Yield the sample in these sizes, or in smaller ones if it is too large or too slow in them."""
    for part in _PARTS:
        smaller = tuple(max(n * part // 8, 2) for n in sizes)
        change = {p: n for g, n in zip(groups, smaller, strict=False) for p in g.places}
        found = list(maker.made(sample, change, "grid=" + "x".join(map(str, smaller)), dtypes))
        if found:
            yield from found
            return


def _forms(source: Sample) -> Iterator[Sample]:
    """Yield the sample, and the sample with one of its first flags changed."""
    yield source
    schema = schema_of(call_of(source.overload))
    fixed = facts(source.overload).fixed
    flags = [o for o in others(source, schema, pointwise=False) if o.is_flag and o.formal.name not in fixed]
    for other in flags[:_FLAGS]:
        yield replace(replaced(source, schema, other), name=f"{source.name}.{other.name}")
