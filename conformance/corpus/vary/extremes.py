"""Samples with integer arguments that do not fit in 32 bits, and with lists of the opposite sign.

Host code that keeps an integer in 32 bits is right for small integers. The limits of 64 bits are tried only for
dimensions, which torch compares with the rank. Elsewhere a kernel adds a size to them or multiplies them by a stride,
and C does not define the overflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample
from conformance.corpus.vary.arguments import Other, by_name, is_enumeration, is_size, names_dimensions, replaced
from conformance.corpus.vary.sources import sources, usable
from conformance.corpus.vary.trial import Trials
from conformance.corpus.vary.variants import Maker
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

# The limits of 32 bits and their neighbours; a number that is 1 in 32 bits; and numbers whose sums with a size fit in
# 64 bits.
INTEGERS = (2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**32 + 1, 2**62, -(2**62))
# Integers for a step, which a kernel multiplies by strides: the products with strides below 2**30 fit in 64 bits.
STEPS = INTEGERS[:-2]
# Integers for a dimension: the limits of 64 bits, and numbers that are the first or the last dimension in 32 bits.
DIMENSIONS = (2**63 - 1, -(2**63), 2**32, 2**32 - 1)
# Integers for the first element of a list.
LISTED = (2**31, -(2**31) - 1, 2**32 + 1)
SOURCES = 2


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload that is not composite, each with one other integer or list of integers.

    A value that CPU refuses is kept if it is a dimension, or if torch also refuses it for tensors without memory.
    Samples without tensors are left out: their integers are sizes, for which perhaps only this machine lacks the
    memory.
    """
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    for source in _varied(samples, values):
        maker = Maker(source, trials, set())
        for other in _others(source, schema):
            variant = replaced(source, schema, other)
            found = list(maker.made(other.name, variant, other))
            yield from found or maker.refused(other.name, variant, trials.raises_without_memory)


def _varied(samples: Sequence[Sample], values: HasValues) -> list[Sample]:
    """Return the samples with tensors to vary: the first ones, and the one with the longest list of integers."""
    varied = sources(samples, values)
    alike = [s for s in samples if usable(s) and s.base == varied[0].base and _longest(s)] if varied else []
    longest = sorted(alike, key=lambda s: (-_longest(s), s.name))[:1]
    return [s for s in dict.fromkeys([*varied[:SOURCES], *longest]) if s.tensors]


def _longest(sample: Sample) -> int:
    lists = (a for a in (*sample.args, *(value for _, value in sample.kwargs)) if isinstance(a, tuple))
    return max((len(a) for a in lists if all(type(n) is int for n in a)), default=0)


def _others(source: Sample, schema: Any) -> Iterator[Other]:
    given, fixed = by_name(source, schema), facts(source.overload).fixed
    for formal in schema.arguments:
        kind = str(formal.type).removeprefix("Optional[")
        if formal.is_out or formal.name in fixed or is_enumeration(formal) or str(formal.real_type) != str(formal.type):
            continue
        if kind.rstrip("]") == "int":
            yield from (Other(formal, n) for n in _integers(formal))
        elif kind.startswith("List[int") and not (names_dimensions(formal) or is_size(formal)):
            yield from (Other(formal, of) for of in _lists(given.get(formal.name)))


def _integers(formal: Any) -> Sequence[int]:
    if names_dimensions(formal):
        return DIMENSIONS
    return STEPS if formal.name == "step" else INTEGERS


def _lists(current: Arg) -> Iterator[Arg]:
    """Yield a list of integers with the opposite signs, and with another first element."""
    integers = [n for n in current if isinstance(n, int)] if isinstance(current, tuple) else []
    if integers:
        yield tuple(-n for n in integers)
        yield from ((n, *integers[1:]) for n in LISTED)
