"""Samples with other arguments, derived from the schema: one argument of a sample is replaced, or two.

A refusal by CPU is kept as a sample that raises only if every device must refuse the call, since a device may do more
than CPU. This holds for a dimension, and for a number that the op would write to integers that cannot hold it. An op
documents the dtypes of its index and its mask, so a refusal of other dtypes is kept. A refusal of another operand's
dtype or shape, or of a number, is kept if torch also refuses it for tensors without memory. For ops that move values,
see ``one_dtype``.
Some calls are defined alike on every device only for pointwise ops (infinite scalars; one of two operands on the host),
and are tried only for these. A composite kernel may create its result on the device of the first operand, so this
operand is not on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample
from conformance.corpus.values import holds
from conformance.corpus.vary.arguments import LARGE, Other, defined, others, replaced, spread
from conformance.corpus.vary.companions import companions
from conformance.corpus.vary.operands import (
    BYTES,
    HOST,
    ROW,
    SCALAR,
    Form,
    beside_half,
    dtypes_of_operands,
    indices,
    misshapen,
    operands,
)
from conformance.corpus.vary.sources import Turns, sources, sources_of_other_ranks
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import autocast_policies, schema_of

AXIS = "variants"

MOST = 48  # of one source, with one argument replaced
PAIRS = 24  # of one source, with two replaced; none of complex ones
CROSSED = 8  # arguments of one source that are replaced together with a tensor of another dtype or shape
# Forms of tensors that an op may refuse for their sizes, which not every kernel checks.
_OF_OTHER_SIZES = (ROW, SCALAR, BYTES)
# Arguments whose numbers are written unchanged, if the op does not round.
_WRITTEN = ("value", "fill_value")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other arguments."""
    schema = schema_of(call_of(overload.name))
    pointwise = "pointwise" in overload.tags
    given = {_key(s) for s in samples}
    if overload.is_composite_implicit:
        yield from _of_composite(overload, [Maker(s, trials, given) for s in sources(samples, values)])
        return
    for source in sources(samples, values):
        maker = Maker(source, trials, given)
        ran: list[Other] = []
        yield from _arguments(maker, list(others(source, schema, pointwise))[:MOST], schema, ran)
        operand, index = list(operands(source, schema, pointwise)), list(indices(source))
        taken: set[str] = set()
        yield from _tensors(maker, operand, trials.raises_without_memory, taken)
        yield from _tensors(maker, index, trials.refuses, taken)
        for name, sample in misshapen(source):
            # An internal function may trust its caller about sizes, and CPU's kernel does: it reads past an argument.
            found = [] if overload.name.startswith("_") else list(maker.made(name, sample))
            yield from found or maker.refused(name, sample, trials.raises_without_memory)
        for dtype, sample in beside_half(source):
            yield from maker.made(f"others=float32_{dtype}", sample, dtypes=(dtype,))
        if source.base != "complex64":
            for one, two in _pairs(ran):
                yield from maker.made(f"{one.name}.{two.name}", replaced(replaced(source, schema, one), schema, two))
            operand, index = ([form for form in of if form[0] in taken] for of in (operand, index))
            for other, (name, sample) in _crossed(ran, operand, index):
                yield from maker.made(f"{other.name}.{name}", replaced(sample, schema, other))


def _of_composite(overload: Overload, makers: Sequence[Maker]) -> Iterator[Sample]:
    """Yield samples with an operand of another dtype, if autocast casts the operands of the composite itself.

    The ops that the composite calls do all else, and have their own samples.
    """
    if overload.name in autocast_policies():
        for maker in makers:
            for name, sample in dtypes_of_operands(maker.source):
                yield from maker.made(name, sample)
            for dtype, sample in beside_half(maker.source):
                yield from maker.made(f"others=float32_{dtype}", sample, dtypes=(dtype,))


def of_other_ranks(
    overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues
) -> Iterator[Sample]:
    """Yield samples with arguments of other ranks, and with a few other values of one non-tensor argument."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    given = {_key(s) for s in samples}
    for source in sources_of_other_ranks(samples, values):
        by_formal: dict[str, list[Other]] = {}
        for other in others(source, schema, pointwise=False):
            by_formal.setdefault(other.formal.name, []).append(other)
        few = [other for of in by_formal.values() for other in spread(of)]
        yield from _arguments(Maker(source, trials, given), few[:MOST], schema, [])


def _arguments(maker: Maker, of: Sequence[Other], schema: Any, ran: list[Other]) -> Iterator[Sample]:
    """Yield the samples with one other value of a non-tensor argument; add the values that run on CPU to ``ran``."""
    refused: set[object] = set()
    for other in of:
        variant = replaced(maker.source, schema, other)
        known = _key(variant) in maker.given
        found = list(maker.made(other.name, variant, other))
        if not found and not known and other.is_real and other.kind not in refused:
            found = list(maker.refused(other.name, variant, maker.trials.raises_without_memory))
            refused |= {other.kind for _ in found}
        if not found and not known and other.is_flag and maker.refuses(variant):
            found = next(filter(None, (list(maker.made(*form)) for form in _beside(other, variant, schema))), [])
        yield from found
        if (known or not all(sample.raises for sample in found)) and other.value != LARGE:
            ran.append(other)


def _beside(flag: Other, sample: Sample, schema: Any) -> Iterator[Form]:
    """Return the sample, which has a changed flag, with other forms of its tensors."""
    return ((f"{flag.name}.{name}", form) for name, form in companions(sample, schema))


def _tensors(
    maker: Maker, forms: Sequence[Form], refuses: Callable[[Sample, str], bool], taken: set[str]
) -> Iterator[Sample]:
    """Yield the samples with a tensor in another form; add the names of forms that run on CPU to ``taken``."""
    for name, sample in forms:
        found = list(maker.made(name, sample))
        yield from found
        taken |= {name for one in found if not one.raises}
        if not any(word in name for word in _OF_OTHER_SIZES):
            yield from maker.refused(name, sample, refuses)


def _key(sample: Sample) -> object:
    """Return a key that is equal for samples that make the same call."""
    return repr((sample.base, sample.args, sample.kwargs, sample.tensors))


def _pairs(ran: Sequence[Other]) -> list[tuple[Other, Other]]:
    """Return pairs of values of two arguments. Pairs of the first values of any two arguments come first.

    Defaults are left out: a pair with a default is the other value alone.
    """
    by_formal: dict[str, list[Other]] = {}
    for other in ran:
        if not other.is_default:
            by_formal.setdefault(other.formal.name, []).append(other)
    found = [
        (i + j, one, two)
        for first, second in combinations(map(spread, by_formal.values()), 2)
        for (i, one), (j, two) in product(enumerate(first), enumerate(second))
    ]
    return [(one, two) for _, one, two in sorted(found, key=lambda pair: pair[0])][:PAIRS]


def _crossed(ran: Sequence[Other], operand: Sequence[Form], index: Sequence[Form]) -> Iterator[tuple[Other, Form]]:
    """Yield one other value of each argument with each form of an index, and with one form of an operand, in turns.

    A flag is combined with a number on the host too, which has a separate path to the device.
    """
    first = {other.formal.name: other for other in reversed(ran) if not other.is_default}
    host = [form for form in operand if form[0].endswith(HOST)][:1]
    for turn, other in enumerate(list(first.values())[:CROSSED]):
        crossed = (*index, *operand[turn % max(len(operand), 1) :][:1], *(host if other.is_flag else ()))
        for form in dict.fromkeys(crossed):
            yield other, form


class Maker:
    """A maker of the variants of one source, which tries each call once."""

    def __init__(self, source: Sample, trials: Trials, given: set[object]) -> None:
        self.source = source
        self.trials = trials
        self.given = given  # the calls of existing samples; tried calls are added
        self._turns = Turns(source)
        self._facts = facts(source.overload)

    def made(
        self, name: str, variant: Sample, other: Other | None = None, dtypes: tuple[str, ...] = ()
    ) -> Iterator[Sample]:
        """Yield the variant if it runs on CPU, and one that raises if every device must refuse the ``other`` value.

        ``dtypes`` are the dtypes to try; if empty, the first dtype and one other.
        """
        if _key(variant) in self.given or any(word.partition("=")[0] in self._facts.fixed for word in name.split(".")):
            return
        self.given.add(_key(variant))
        sample = replace(variant, name=f"{self.source.name}.{name}", axis=AXIS)
        dtypes = dtypes or self._dtypes(name, other)
        ran = {d: ran.sample for d in dtypes if (ran := self.trials.run(sample, d))}
        if ran:
            yield replace(next(iter(ran.values())), dtypes=tuple(ran))
        refused = tuple(d for d in self._to_refuse(dtypes, ran, other) if self.trials.raises(sample, d))
        if refused:
            yield replace(sample, name=sample.name + (".refused" if ran else ""), dtypes=refused, raises=True)

    def refused(self, name: str, variant: Sample, refuses: Callable[[Sample, str], bool]) -> Iterator[Sample]:
        """Yield the variant as one that raises, if it raises on CPU and ``refuses`` confirms the refusal."""
        sample = replace(variant, name=f"{self.source.name}.{name}", axis=AXIS)
        first = self._turns.first
        if self.trials.raises(sample, first) and refuses(sample, first):
            yield replace(sample, dtypes=(first,), raises=True)

    def refuses(self, variant: Sample) -> bool:
        """Return whether CPU refuses the variant with an error."""
        return self.trials.raises(variant, self._turns.first)

    def _dtypes(self, name: str, other: Other | None) -> tuple[str, ...]:
        dtypes = defined(self._turns.of(name), name)
        small = [d for d in ("int8", "uint8") if d in self.source.dtypes and d not in dtypes]
        return (*dtypes, *small[:1]) if other and self._writes(other) else dtypes

    def _to_refuse(self, dtypes: Sequence[str], ran: Collection[str], other: Other | None) -> Sequence[str]:
        """Return the dtypes in which every device must refuse the value, if CPU does."""
        if other and other.is_dim and not ran:
            return dtypes[:1]
        if other and self._writes(other):
            return [d for d in dtypes if d not in ran and not holds(d, other.value)]
        return ()

    def _writes(self, other: Other) -> bool:
        return other.formal.name in _WRITTEN and self._facts.tolerance.exact
