"""Samples with the values at which kernels go wrong, in one argument at a time, and in pairs where an op is pointwise.

The samples are enlarged first, so that each hard value, or each pair of two, has an element of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import BEYOND_FLOAT, Arg, DtypeArg, Sample, TensorSlot
from conformance.corpus.places import label, resized, with_empty_outputs
from conformance.corpus.values import kind_of
from conformance.corpus.vary import arguments, operands
from conformance.corpus.vary.arguments import Other
from conformance.corpus.vary.filling import Filling, slots_of
from conformance.corpus.vary.fills import filled, of_one_shape
from conformance.corpus.vary.refused_values import Refused
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

ARGUMENTS = 3  # the most arguments of a sample to vary, one at a time
_ONE = 80  # elements, more than the hard values of any dtype
_PAIRS = 4800  # elements, more than their pairs
_MANY = 5003  # elements: several blocks of vectors, and a tail
_SPARSE = 7 * _ONE
_LONG = 1031  # elements of a row: an op may have a separate kernel for rows past a tile
# Values for all elements of an argument, by the base of the sample: for several elements, and for a single one.
_ALIKE = {"float32": ("0", "inf", "-inf", "nan"), "int64": ("0", "min", "max"), "complex64": ("0",)}
_ALONE = {"float32": ("inf", "-inf", "nan", "max"), "int64": ("min", "max"), "complex64": ("0",)}
# A count that is larger than the usual tile.
_COUNT = 1031
_CANDIDATES = 4  # samples in which a count is tried: an argument may fix the size of the result
_FORMS = 2  # samples of other ranks, or along other dimensions, in which a few values are tried
# For a complex zero, CPU's scalar loop and its vector loop give different imaginary parts.
_UNEVEN = ("log2",)
_ARGUMENTS = 10  # other values of arguments that are tried with hard values
# By the base: a dtype for the op to compute in, and narrower dtypes, in which it would overflow.
_WIDER = {
    "float32": ("float64", ("float32", "float16", "bfloat16")),
    "int64": ("int64", ("int32", "int16", "int8", "uint8")),
}


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with hard values."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    for base in ("float32", "int64", "bool", "complex64"):
        candidates = [s for s in samples if s.base == base and usable(s)]
        source = max(candidates, key=_tensors, default=None)
        if source and "pointwise" in overload.tags and base != "int64":  # the smallest / -1 may kill a process
            source = of_one_shape(source, values)
        uneven = base == "complex64" and overload.base.rstrip("_") in _UNEVEN
        if source and base != "bool" and not uneven:
            others = _of_other_forms(source, candidates, schema) if "pointwise" not in overload.tags else []
            yield from _in_forms([_Varied(s, overload, trials, values) for s in (source, *others)])
        if base != "bool" and "pointwise" not in overload.tags:
            counted = (list(_Varied(s, overload, trials, values).counted()) for s in candidates[:_CANDIDATES])
            yield from next(filter(None, counted), [])
        if source and facts(overload.name).tolerance.exact:
            for word, name, sample in operands.converting(source, schema):
                named = replace(sample, name=f"{source.name}.{word}")
                yield from _Varied(named, overload, trials, values).converted(name)


def _tensors(sample: Sample) -> int:
    """Return how many arguments have more than one value in the cell's dtype."""
    return sum(s.numel > 1 and s.dtype is None and bool(s.pool) for s in sample.tensors)


def _in_forms(forms: Sequence[_Varied]) -> Iterator[Sample]:
    """Yield the samples of the first form, and a few of each other form.

    An op that refuses a negative index in one form does not count from the end in another form: it lacks a check there.
    """
    yield from forms[0].samples()
    for form in forms[1:]:
        yield from form.of_a_form()
    if not any(form.refused.refuses_negative for form in forms):
        yield from chain.from_iterable(form.refused.from_end for form in forms)


def _of_other_forms(source: Sample, samples: Sequence[Sample], schema: Any) -> list[Sample]:
    """Return a few samples with other ranks than the source, then samples along another dimension."""
    ranks = {_ranks(source)}
    dims = {(_ranks(source), _dims(source, schema))}
    found = []
    for of_ranks in (True, False):
        for sample in samples:
            form = (_ranks(sample), _dims(sample, schema))
            if form not in dims and (form[0] not in ranks or not of_ranks) and any(s.numel > 1 for s in sample.tensors):
                ranks.add(form[0])
                dims.add(form)
                found.append(sample)
    return found[:_FORMS]


def _ranks(sample: Sample) -> tuple[int, ...]:
    return tuple(len(s.shape) for s in sample.tensors)


def _dims(sample: Sample, schema: Any) -> tuple[object, ...]:
    """Return for each dimension among the arguments whether it is the first one, the last one, or another."""
    rank = max(_ranks(sample), default=0)
    given = arguments.by_name(sample, schema)
    named = (given.get(formal.name) for formal in schema.arguments if arguments.names_dimensions(formal))
    return tuple({0: "first", rank - 1: "last"}.get(d % rank, "other") if rank else "" for d in named if type(d) is int)


class _Varied(Filling):
    """The samples with hard values that are made from one sample."""

    def __init__(self, source: Sample, overload: Overload, trials: Trials, values: HasValues) -> None:
        super().__init__(source, overload, trials, values)
        self.refused = Refused(self)
        self._pointwise = "pointwise" in overload.tags
        self._exact = facts(overload.name).tolerance.exact

    def _free_slots(self) -> list[TensorSlot]:
        """Return the arguments whose elements have the dtype of the call and may be any number."""
        slots = [s for s in self.source.tensors if s.pool and not s.same_as and s.dtype is None and s.numel]
        return [s for s in slots if s.argument not in self.fixed]

    def samples(self) -> Iterator[Sample]:
        """Yield the samples that run on CPU in some dtype."""
        slots = self._free_slots() if self.dtypes else []
        for slot in slots[:ARGUMENTS]:
            hard = self._hard([slot], _ONE)
            yield from hard
            if hard and self.source.base == "complex64" and self._exact:
                yield from self.made(hard[0], {slot.index: "hard/infinite"}, ".infinite")
                yield from self._with_arguments(slot, "hard/infinite")
            if not (hard and self._pointwise):
                yield from self._sparse(slot)
                yield from self._alike(slot)
            if slot is slots[0] and not self._pointwise:
                yield from self._along(slot, "hard/0" if hard else "hard/sparse")
            if not self._pointwise:
                yield from self._with_flags(slot)
            if slot is slots[0] and not self._pointwise:
                yield from self._in_wider_dtype(slot)
            if slot is slots[0]:
                yield from self._with_arguments(slot, "hard/0" if hard else "hard/sparse")
            elif hard and self._pointwise:
                yield from self._times_zero(slot)
        if self._pointwise:
            pairs = self._hard(slots[:2], _PAIRS) if len(slots) > 1 else []
            yield from pairs or self._in_many_elements(slots[:1])
        if not self._pointwise:
            yield from self.refused.samples()

    def of_a_form(self) -> Iterator[Sample]:
        """Yield a few samples of a further form of an op whose first form has all hard values."""
        slots = [s for s in self._free_slots() if s.numel > 1] if self.dtypes else []
        for slot in slots[:1]:
            yield from self._sparse(slot)
        yield from self.refused.samples()

    def counted(self) -> Iterator[Sample]:
        """Yield samples with one large number in an argument of integers on which the size of a result depends."""
        for slot in [s for s in self.source.tensors if s.pool and not s.same_as and s.numel]:
            if kind_of(slot.dtype or self.source.base) == "int" and slot.argument not in self.fixed:
                for made in self.made(self.source, {slot.index: f"hard/last/{_COUNT}"}, f".last.{_COUNT}"):
                    few, many = (self.trials.run(sample, made.dtypes[0]) for sample in (self.source, made))
                    if few and many and few.shapes != many.shapes:
                        yield made

    def converted(self, name: str) -> Iterator[Sample]:
        """Yield samples with hard values in the argument of this name, whatever its dtype."""
        if self.dtypes:
            slots = [s for s in self.source.tensors if s.name == name and s.argument not in self.fixed]
            yield from self._hard(slots, _ONE) if slots else ()

    def _in_many_elements(self, slots: Sequence[TensorSlot]) -> list[Sample]:
        """Return samples of many hard elements, for which a kernel may have a separate loop.

        Only two dtypes are tried, since dtypes of one width have the same loops.
        """
        return self._hard(slots, _MANY, ".many", tuple({self.dtypes[0]: 0, self.dtypes[-1]: 0})) if slots else []

    def _hard(
        self, slots: Sequence[TensorSlot], elements: int, more: str = "", dtypes: tuple[str, ...] = ()
    ) -> list[Sample]:
        """Return samples in which all elements of some arguments are hard; none unless results have the same shape."""
        large = self._enlarged(slots, elements)
        ran = self.trials.run(large, self.dtypes[0]) if large else None
        if large is None or ran is None or any(shape != large.tensors[slots[0].index].shape for shape in ran.shapes):
            return []
        return self.made(large, {s.index: f"hard/{i}" for i, s in enumerate(slots)}, more, dtypes)

    def _with_arguments(self, slot: TensorSlot, kind: str) -> Iterator[Sample]:
        """Yield samples with hard values in one argument, and with another value of a non-tensor argument."""
        sparse, more = kind == "hard/sparse", {"hard/0": "."}.get(kind, f".{kind.removeprefix('hard/')}.")
        large = self._enlarged([slot], _SPARSE if sparse else _ONE)
        for other in _few(arguments.others(self.source, self.schema, pointwise=True)) if large else ():
            computes = kind == "hard/infinite" and isinstance(other.value, str)  # it may multiply: undefined in C
            if large and other.formal.name not in self.fixed and not computes:
                changed = arguments.replaced(large, self.schema, other)
                (index,) = (s.index for s in changed.tensors if s.name == slot.name)
                yield from self.made(changed, {index: kind}, more + other.name)

    def _in_wider_dtype(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples of the largest numbers, with an argument that asks the op to compute in a wider dtype."""
        wider, narrow = _WIDER.get(self.source.base, ("", ()))
        formals = (a for a in self.schema.arguments if "ScalarType" in str(a.real_type) and not a.is_out)
        for formal in formals if wider and slot.numel > 1 else ():
            other = Other(formal, DtypeArg(wider))
            asked = arguments.replaced(self.source, self.schema, other)
            (index,) = (s.index for s in asked.tensors if s.name == slot.name)
            slots = (s if s.pool else replace(s, dtype=wider) for s in asked.tensors)
            sample = with_empty_outputs(asked, slots)
            yield from self.made(sample, {index: "hard/all/max"}, f".max.{other.name}", narrow)

    def _times_zero(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples with hard values and a number of zero: zero times infinity is NaN, not zero."""
        large = self._enlarged([slot], _ONE)
        for other in arguments.others(self.source, self.schema, pointwise=True) if large else ():
            zero = not isinstance(other.value, bool) and other.value == 0
            if large and zero and other.is_real and other.formal.name not in self.fixed:
                changed = arguments.replaced(large, self.schema, other)
                (index,) = (s.index for s in changed.tensors if s.name == slot.name)
                yield from self.made(changed, {index: "hard/0"}, "." + other.name)

    def _sparse(self, slot: TensorSlot) -> list[Sample]:
        large = self._enlarged([slot], _SPARSE)
        return self.made(large, {slot.index: "hard/sparse"}, ".sparse") if large else []

    def _along(self, slot: TensorSlot, kind: str) -> Iterator[Sample]:
        """Yield samples that are long in one dimension at a time, also with a flag changed.

        An op may take the elements along this dimension as a row.
        """
        for group in self.groups:
            if slot.index in slots_of(group) and (long := self.lengthened(group, _LONG)):
                along = f".{label(self.source, group.places)}"
                yield from self.made(long, {slot.index: kind}, along)
                yield from self._turned(long, slot, kind, along)

    def _turned(self, sample: Sample, slot: TensorSlot, kind: str, more: str) -> Iterator[Sample]:
        """Yield the sample once for each flag, with this flag changed and one argument filled by a kind of values."""
        for other in arguments.others(self.source, self.schema, pointwise=False):
            if other.is_flag and other.formal.name not in self.fixed:
                turned = arguments.replaced(sample, self.schema, other)
                (index,) = (s.index for s in turned.tensors if s.name == slot.name)
                yield from self.made(turned, {index: kind}, f"{more}.{other.name}")

    def _alike(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples in which all elements of an argument are equal, or its only one is hard."""
        for value in (_ALIKE if slot.numel > 1 else _ALONE)[self.source.base]:
            yield from self.made(self.source, {slot.index: f"hard/all/{value}"}, f".{value}")

    def _with_flags(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples with an argument of infinities only and one flag changed, which may concern infinities."""
        if self.source.base == "float32":
            yield from self._turned(self.source, slot, "hard/all/inf", ".inf")

    def _enlarged(self, slots: Sequence[TensorSlot], elements: int) -> Sample | None:
        """Return the sample with ``elements`` or more elements in each of ``slots``; None if no size gives as many.

        If several sizes do, the size with the largest results is chosen, since a NaN spreads over the rest of its row.
        """
        wanted = {s.index for s in slots}
        found: list[Ran] = []
        for group in self.groups:
            if wanted <= slots_of(group):
                per_index = min(s.numel // max(group.size, 1) for s in slots)
                n = max(group.size, math.ceil(elements / max(per_index, 1)))
                change = dict.fromkeys(group.places, n)
                for sample in filled(self.source, resized(self.source, change), change, self.values):
                    if ran := self.trials.run(sample, self.dtypes[0]):
                        found.append(ran)
                        break
        best = max(found, key=lambda ran: sum(map(math.prod, ran.shapes)), default=None)
        return best.sample if best else None


def _few(others: Iterable[Other]) -> list[Other]:
    """Return a few values of arguments: the first of each, then the second of each, and extreme numbers.

    The few values are no dimensions and no dtypes.
    """
    by_formal: dict[str, list[Other]] = {}
    every = {other.name: other for other in others}
    for other in every.values():
        if other.value is None or isinstance(other.value, (bool, int, float, str)) and not other.is_dim:
            by_formal.setdefault(other.formal.name, []).append(other)
    rounds = zip_longest(*by_formal.values())
    few = [other for one in rounds for other in one if other is not None][:_ARGUMENTS]
    names = {other.name for other in few}
    extreme = [o for o in every.values() if _is_extreme(o.value)]
    return [*few, *(other for other in extreme if other.name not in names)]


def _is_extreme(value: Arg) -> bool:
    """Return whether a number is infinite, an integer that float32 does not hold, or an exponent of large powers."""
    large = type(value) is int and value in (BEYOND_FLOAT, arguments.POWER)
    return large or (isinstance(value, float) and math.isinf(value))
