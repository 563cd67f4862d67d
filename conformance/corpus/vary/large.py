"""Samples with another argument and a large size at once.

A flag, a dimension or a dtype may select another loop of a kernel. Only a large call with this argument shows that this
loop goes wrong past a tile or a block. So a few values of each argument are tried, each with one or two large sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.places import Place, label
from conformance.corpus.vary.arguments import Other, defined, others, replaced, spread
from conformance.corpus.vary.operands import Form, beside_half, converting, operands
from conformance.corpus.vary.sizes import LARGE, Maker
from conformance.corpus.vary.sources import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

# Past a tile of 1,024, past blocks of 4,096, and past 65,535 rows. The forms of a source take them in turns.
SIZES = (1031, 4099, 65537)
_MOST = 14  # forms of a source
_OF_ONE = 3  # values of an argument
_DIMS = 4  # values of an argument that names dimensions
_HALVES = ("bfloat16", "float16")
_EXTREMES = ("_largest", "_tenth")  # ends of the names of operands that are tried for their numbers


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other arguments, in which the first or the last free size is large."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    for source in sources(samples, values):
        maker, turns = Maker(trials, values), Turns(source)
        for turn, (form, sample) in enumerate(forms(source, schema, pointwise="pointwise" in overload.tags)):
            groups = maker.groups(sample, turns.first)
            for at, group in enumerate(dict.fromkeys([*groups[:1], *groups[-1:]])):
                size = SIZES[(turn + at) % len(SIZES)]
                beside = {p: min(g.size, 2) for g in groups if g != group for p in g.places} if size > LARGE else {}
                change: dict[Place, int] = beside | dict.fromkeys(group.places, size)
                dtypes = defined(turns.of(f"{form}.{size}"), form)
                name = f"{form}.{label(sample, group.places)}={size}"
                chosen = dtypes[(turn + at) % max(len(dtypes), 1) :][:1]
                yield from maker.made(sample, change, name, (*chosen, *_half(source, chosen, turn, overload)))


def _half(source: Sample, chosen: tuple[str, ...], turn: int, overload: Overload) -> tuple[str, ...]:
    """Return a half dtype that is not chosen yet, in turns: sums and counts of many elements need a wider dtype."""
    halves = [d for d in _HALVES if d in source.dtypes]
    wanted = halves and chosen and not set(halves) & set(chosen) and "pointwise" not in overload.tags
    return (halves[turn % len(halves)],) if wanted else ()


def forms(source: Sample, schema: Any, *, pointwise: bool) -> list[Form]:
    """Return the calls with another argument: a few values of each, and each kind of other operand.

    A converting call is tried with every target dtype, because its loops depend on the sizes of both elements.
    """
    known = facts(source.overload)
    fixed = known.fixed
    found = [(one.name, replaced(source, schema, one)) for one in _values(source, schema)]
    kinds: dict[str, Form] = {}
    for name, sample in operands(source, schema, pointwise) if source.base != "complex64" else ():
        if not name.endswith(_EXTREMES):
            kinds.setdefault(name.partition("_")[0], (name, sample))
    found += kinds.values()
    found += [(f"others=float32_{dtype}", sample) for dtype, sample in beside_half(source)]
    found = [(name, sample) for name, sample in found if name.partition("=")[0] not in fixed][:_MOST]
    converted = [(name, sample) for name, _, sample in converting(source, schema)] if known.tolerance.exact else []
    return list({name: (name, sample) for name, sample in (*found, *converted)}.values())


def _values(source: Sample, schema: Any) -> Iterator[Other]:
    """Yield a few other values of each non-tensor argument. Dimensions are counted from the front."""
    by_formal: dict[str, list[Other]] = {}
    for other in others(source, schema, pointwise=False):
        if not (other.is_dim and isinstance(other.value, int) and other.value < 0):
            by_formal.setdefault(other.formal.name, []).append(other)
    for of in by_formal.values():
        yield from of[:_DIMS] if of[0].is_dim else spread(of)[:_OF_ONE]
