"""Samples with a dimension of one element, and with a changed flag, word or mode.

A formula may divide by a size minus one, as the formula of ``align_corners`` does, or by a degree of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import label
from conformance.corpus.vary.arguments import others, replaced, selects
from conformance.corpus.vary.sizes import Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

AXIS = "variants"
FLAGS = 3  # of a source
MODES = 4  # and words
SIZES = 4  # groups of sizes of a source


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload in which one size is 1 and one flag, word or mode is changed."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    for source in sources(samples, values):
        tried = list(others(source, schema, pointwise=False))
        turned = [o for o in tried if isinstance(o.value, bool)][:FLAGS]
        turned += [o for o in tried if selects(o) and not o.is_flag][:MODES]
        if not turned:
            continue
        maker, turns = Maker(trials, values), Turns(source)
        groups = [group for group in maker.groups(source, turns.first) if group.size > 1][:SIZES]
        for other in turned:
            changed = replaced(source, schema, other)
            for group in groups:
                name = f"{other.name}.{label(source, group.places)}=1"
                for sample in turns.counted(maker.made(changed, dict.fromkeys(group.places, 1), name, turns.dtypes())):
                    yield replace(sample, axis=AXIS)
