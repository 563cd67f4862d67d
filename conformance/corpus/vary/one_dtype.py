"""Samples in which the values that an op moves have another dtype than their target, if CPU refuses all other dtypes.

An op that moves values either converts them, or requires one dtype on every device. An op that computes is not tried:
another device may have a loop for two dtypes that CPU lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.vary.operands import Form, dtypes_of_operands
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.corpus.vary.variants import Maker
from conformance.inventory import Overload
from conformance.ops import facts

# Families of ops that move values, even if they add up values that are moved to the same element.
_MOVING = ("indexing", "scatter_gather")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples that raise, of an overload that moves values and accepts them in one dtype alone."""
    known = facts(overload.name)
    moves = known.tolerance.exact or known.family in _MOVING
    if overload.is_composite_implicit or "pointwise" in overload.tags or not moves:
        return
    for source in sources(samples, values):
        maker = Maker(source, trials, set())
        by_operand: dict[str, list[Form]] = {}
        for name, form in dtypes_of_operands(source):
            by_operand.setdefault(name.partition("=")[0], []).append((name, form))
        for forms in by_operand.values():
            if all(trials.refuses(form, Turns(source).first) for _, form in forms):
                for name, form in forms:
                    yield from maker.refused(_named(source, name), form, trials.refuses)


def _named(source: Sample, name: str) -> str:
    """Return the name, marked if ``variants`` has it for the call in which all tensors have the operand's dtype."""
    return f"{name}.refused" if name.rpartition("=")[2] in source.dtypes else name
