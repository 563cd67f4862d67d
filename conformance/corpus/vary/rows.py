"""Samples of long rows in which nearly all elements are equal, or are far from zero.

In a row of drawn values, the element that a kernel searches for is near the front. In a row of padding, such as a row
of a mask, it is after the first block, which has only padding. In a row far from zero, the deviations are lost if its
mean, or the sum of its squares, is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, label
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, with_bools
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload
from conformance.ops import facts

AXIS = "values"

# More elements than a block or a tile has.
LENGTH = 1031
# The padding, by the base of a sample.
PADDING = {"float32": ("0", "-inf"), "int64": ("0",), "complex64": ("0",), "bool": ("0", "1")}
_GROUPS = 3  # of sizes of one source
_HALVES = ("bfloat16", "float16")
# There is no wider dtype to measure the error of CPU's own sum of many equal terms.
_WIDEST = ("float64", "complex128")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with long rows of padding, or of values far from zero, in the first argument."""
    if overload.is_composite_implicit or "pointwise" in overload.tags:
        return
    known = facts(overload.name)
    maker = Maker(trials, values)
    for source in with_bools(samples, values):
        dtypes = tuple(d for d in source.dtypes if known.tolerance.exact or d not in _WIDEST)
        if not dtypes:
            continue
        slots = [s for s in source.tensors if s.pool and not s.same_as and s.dtype is None and s.numel]
        slot = next((s for s in slots if s.argument not in known.fixed), None)
        turns = Turns(replace(source, dtypes=dtypes))
        for group in maker.groups(source, turns.first)[:_GROUPS] if slot else ():
            if slot and slot.index in {p.slot for p in group.places if isinstance(p, Extent)}:
                change = dict.fromkeys(group.places, LENGTH)
                name = f"{slot.name}.{label(source, group.places)}={LENGTH}"
                for word in PADDING[source.base]:
                    made = maker.made_of(source, change, (slot.index, f"hard/rare/{word}"), turns.dtypes())
                    yield from turns.counted(
                        replace(s, name=f"{source.name}.rare={name}.{word}", axis=AXIS) for s in made
                    )
                if source.base == "float32" and not known.tolerance.exact:
                    halves = tuple(d for d in _HALVES if d in dtypes)
                    made = maker.made_of(source, change, (slot.index, "hard/offset"), (turns.first, *halves))
                    yield from (replace(s, name=f"{source.name}.offset={name}", axis=AXIS) for s in made)
