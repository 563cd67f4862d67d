"""Samples with the values at which kernels go wrong, in one argument at a time, and in pairs where an op is pointwise.

The samples are enlarged first, so that each hard value, or each pair of two, has an element of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, product, zip_longest
from typing import Any

from conformance.corpus import fills
from conformance.corpus.calls import HasValues
from conformance.corpus.model import BEYOND_FLOAT, Arg, DtypeArg, Sample, TensorSlot
from conformance.corpus.places import Extent, label, resized, with_empty_outputs, with_tensors
from conformance.corpus.values import kind_of
from conformance.corpus.vary import arguments, operands
from conformance.corpus.vary.arguments import Other
from conformance.corpus.vary.fills import filled, of_one_shape
from conformance.corpus.vary.sizes import Group, Maker
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Ran, Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

AXIS = "values"

ARGUMENTS = 3  # at most so many arguments of a sample, one at a time
# What the values are limited to where CPU refuses all of them, such as division by zero.
LIMITS = ("", "/nonzero", "/positive")
_ONE = 80  # elements, more than the hard values of any dtype
_PAIRS = 4800  # elements, more than their pairs
_MANY = 5003  # elements: several blocks of vectors, and a tail
_SPARSE = 7 * _ONE
_LONG = 1031  # elements of a row: an op may have a kernel of its own for rows past a tile
# Values that all elements of an argument have, by the base of the sample; and those of one that has a single element.
_ALIKE = {"float32": ("0", "inf", "-inf", "nan"), "int64": ("0", "min", "max"), "complex64": ("0",)}
_ALONE = {"float32": ("inf", "-inf", "nan", "max"), "int64": ("min", "max"), "complex64": ("0",)}
# Values that an op may refuse, by the kind of an argument: below every index and count, below 0, and unordered.
_REFUSED = {"int": ("all/min",), "float": ("all/-inf", "all/nan")}
# Arguments that are indices or counts by their names, and more values of those: the first one below 0, which a kernel
# may count from the end, also alone behind good ones, and one beyond all sizes.
_INDICES = ("index", "indices", "target", "repeats")
_REFUSED_INDICES = ("all/-1", "all/70001", "last/-1")
_COUNTED_FROM_END = ("all/-1", "last/-1")  # taken by ops that count such an index from the end
# Those that are tried where a dimension is long: a kernel may check indices in a loop of its own only if they are many,
# or if there are few to index.
_REFUSED_IN_LONG = ("last/70001", "last/-1")
_LENGTH = 1031
_BEYOND_16_BITS = 65_603
_WRITTEN = "value"  # CPU refuses a number that float16 does not hold, or writes infinity, as the op has it
_OF_ONE_NUMBER = ("hard/all", "hard/last")
# A count that is larger than the usual tile.
_COUNT = 1031
_CANDIDATES = 4  # samples in which a count is tried: the size of a result may be another argument
_FORMS = 2  # samples of other ranks, or along other dimensions, in which a few values are tried
# Of a complex zero, CPU's loops over single elements and over vectors give another imaginary part.
_UNEVEN = ("log2",)
_ARGUMENTS = 10  # other values of arguments that are tried with hard values
# Dtypes in which an op may be asked to compute, by the base, and narrower ones, in which it would overflow.
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
        if source and "pointwise" in overload.tags and base != "int64":  # the smallest by -1 may end a process
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
    """Yield the samples of the first form, and a few of each other one.

    An op that refuses an index below 0 in one form does not count from the end in another: it does not check there.
    """
    yield from forms[0].samples()
    for form in forms[1:]:
        yield from form.of_a_form()
    if not any(form.refuses_negative for form in forms):
        yield from chain.from_iterable(form.from_end for form in forms)


def _of_other_forms(source: Sample, samples: Sequence[Sample], schema: Any) -> list[Sample]:
    """Return a few samples whose tensors have other ranks than the source's; then those along another dimension."""
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


class _Varied:
    """The samples with hard values that one sample gives."""

    def __init__(self, source: Sample, overload: Overload, trials: Trials, values: HasValues) -> None:
        self.refuses_negative = False  # whether CPU refuses an index below 0, once the samples are made
        self.from_end: list[Sample] = []  # those with such an index that CPU takes
        self._source = source
        self._pointwise = "pointwise" in overload.tags
        self._schema = schema_of(call_of(overload.name))
        self._fixed = facts(overload.name).fixed
        self._exact = facts(overload.name).tolerance.exact
        self._trials = trials
        self._values = values
        self._dtypes = tuple(d for d in source.dtypes if not d.startswith("float8"))

    @cached_property
    def _groups(self) -> list[Group]:
        return Maker(self._trials, self._values).groups(self._source, self._dtypes[0]) if self._dtypes else []

    def _free_slots(self) -> list[TensorSlot]:
        """Return the arguments whose elements have the dtype of the call and may be any number."""
        slots = [s for s in self._source.tensors if s.pool and not s.same_as and s.dtype is None and s.numel]
        return [s for s in slots if s.argument not in self._fixed]

    def samples(self) -> Iterator[Sample]:
        """Yield the samples that run on CPU in some dtype."""
        slots = self._free_slots() if self._dtypes else []
        for slot in slots[:ARGUMENTS]:
            hard = self._hard([slot], _ONE)
            yield from hard
            if hard and self._source.base == "complex64" and self._exact:
                yield from self._made(hard[0], {slot.index: "hard/infinite"}, ".infinite")
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
            yield from self._refused()

    def of_a_form(self) -> Iterator[Sample]:
        """Yield a few samples, for a sample of another form than that in which all values are tried."""
        slots = [s for s in self._free_slots() if s.numel > 1] if self._dtypes else []
        for slot in slots[:1]:
            yield from self._sparse(slot)
        yield from self._refused()

    def counted(self) -> Iterator[Sample]:
        """Yield samples with one large number in an argument of integers on which the size of a result depends."""
        for slot in [s for s in self._source.tensors if s.pool and not s.same_as and s.numel]:
            if kind_of(slot.dtype or self._source.base) == "int" and slot.argument not in self._fixed:
                for made in self._made(self._source, {slot.index: f"hard/last/{_COUNT}"}, f".last.{_COUNT}"):
                    few, many = (self._trials.run(sample, made.dtypes[0]) for sample in (self._source, made))
                    if few and many and few.shapes != many.shapes:
                        yield made

    def _refused(self) -> Iterator[Sample]:
        """Yield samples that CPU refuses for the values of one argument, such as an index out of bounds.

        An optional argument may be checked against the values first. So they must be refused without it, too. Arguments
        of random ops keep their values for the sake of what is drawn, which nothing is of a call that is refused.
        """
        kept = () if facts(self._source.overload).random else self._fixed
        others = arguments.others(self._source, self._schema, pointwise=False)
        absent = [other for other in others if other.value is None and other.formal.name not in self._fixed]
        forms = {"": self._source}
        forms |= {f".{o.name}": arguments.replaced(self._source, self._schema, o) for o in absent[:1]}
        slots = [s for s in self._source.tensors if s.pool and not s.same_as and s.numel]
        slots = [s for s in slots if s.argument not in kept]
        indices = [s for s in slots if s.argument in _INDICES]
        for slot in slots:
            more = _REFUSED_INDICES if slot.argument in _INDICES else ()
            for value in (*_REFUSED.get(kind_of(slot.dtype or self._source.base), ()), *more):
                found = self._refused_in(forms, slot, value)
                yield from found
                if found and value in _COUNTED_FROM_END:
                    self.refuses_negative = True
                elif value in _COUNTED_FROM_END:
                    name = "." + value.replace("/", ".")
                    self.from_end += self._made(self._source, {slot.index: f"hard/{value}"}, name)
        for group, length in product(self._groups if indices else (), (_LENGTH, _BEYOND_16_BITS)):
            of = [s for s in indices if length == _LENGTH or s.index in _slots(group)]
            if of and (long := self._lengthened(group, length)):
                form = {f".{label(self._source, group.places)}={length}": long}
                for slot, value in product(of, _REFUSED_IN_LONG):
                    yield from self._refused_in(form, slot, value)

    def _lengthened(self, group: Group, length: int) -> Sample | None:
        """Return the source with other sizes of a group, if it runs on CPU."""
        change = dict.fromkeys(group.places, length)
        candidates = filled(self._source, resized(self._source, change), change, self._values)
        ran = next(filter(None, (self._trials.run(sample, self._dtypes[0]) for sample in candidates)), None)
        return ran.sample if ran else None

    def _refused_in(self, forms: dict[str, Sample], slot: TensorSlot, value: str) -> list[Sample]:
        """Return a sample of each form of the call with a value in an argument; none if CPU takes it in one form."""
        found = []
        for more, source in forms.items():
            index = next((s.index for s in source.tensors if s.name == slot.name), None)
            if index is None:
                continue
            sample = _with_fills(source, {index: f"hard/{value}"}, "")
            dtypes = tuple(d for d in self._dtypes if d != "float16" or slot.argument != _WRITTEN)
            dtypes = tuple(d for d in dtypes if self._trials.raises(sample, d))
            if not (dtypes and self._trials.run(source, dtypes[0])):
                return []
            name = f"{self._source.name}.hard={slot.name}.{value.removeprefix('all/').replace('/', '.')}{more}.refused"
            found.append(replace(sample, name=name, dtypes=dtypes[:1], axis=AXIS, raises=True))
        return found

    def converted(self, name: str) -> Iterator[Sample]:
        """Yield samples with hard values in the argument of this name, whatever its dtype."""
        if self._dtypes:
            slots = [s for s in self._source.tensors if s.name == name and s.argument not in self._fixed]
            yield from self._hard(slots, _ONE) if slots else ()

    def _in_many_elements(self, slots: Sequence[TensorSlot]) -> list[Sample]:
        """Return samples of many hard elements: a kernel may have another loop for those than for few.

        In two dtypes alone: the loops are the same for all of a width.
        """
        return self._hard(slots, _MANY, ".many", tuple({self._dtypes[0]: 0, self._dtypes[-1]: 0})) if slots else []

    def _hard(
        self, slots: Sequence[TensorSlot], elements: int, more: str = "", dtypes: tuple[str, ...] = ()
    ) -> list[Sample]:
        """Return samples in which every element of some arguments is hard; none unless results have their shape."""
        large = self._enlarged(slots, elements)
        ran = self._trials.run(large, self._dtypes[0]) if large else None
        if large is None or ran is None or any(shape != large.tensors[slots[0].index].shape for shape in ran.shapes):
            return []
        return self._made(large, {s.index: f"hard/{i}" for i, s in enumerate(slots)}, more, dtypes)

    def _with_arguments(self, slot: TensorSlot, kind: str) -> Iterator[Sample]:
        """Yield samples with hard values in which an argument that is no tensor has another value."""
        sparse, more = kind == "hard/sparse", {"hard/0": "."}.get(kind, f".{kind.removeprefix('hard/')}.")
        large = self._enlarged([slot], _SPARSE if sparse else _ONE)
        for other in _few(arguments.others(self._source, self._schema, pointwise=True)) if large else ():
            computes = kind == "hard/infinite" and isinstance(other.value, str)  # it may multiply, which C leaves open
            if large and other.formal.name not in self._fixed and not computes:
                changed = arguments.replaced(large, self._schema, other)
                (index,) = (s.index for s in changed.tensors if s.name == slot.name)
                yield from self._made(changed, {index: kind}, more + other.name)

    def _in_wider_dtype(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples of the largest numbers in which the op is asked to compute in a wider dtype."""
        wider, narrow = _WIDER.get(self._source.base, ("", ()))
        formals = (a for a in self._schema.arguments if "ScalarType" in str(a.real_type) and not a.is_out)
        for formal in formals if wider and slot.numel > 1 else ():
            other = Other(formal, DtypeArg(wider))
            asked = arguments.replaced(self._source, self._schema, other)
            (index,) = (s.index for s in asked.tensors if s.name == slot.name)
            slots = (s if s.pool else replace(s, dtype=wider) for s in asked.tensors)
            sample = with_empty_outputs(asked, slots)
            yield from self._made(sample, {index: "hard/all/max"}, f".max.{other.name}", narrow)

    def _times_zero(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples with hard values in which a number is zero: zero times infinity is NaN, not nothing."""
        large = self._enlarged([slot], _ONE)
        for other in arguments.others(self._source, self._schema, pointwise=True) if large else ():
            zero = not isinstance(other.value, bool) and other.value == 0
            if large and zero and other.is_real and other.formal.name not in self._fixed:
                changed = arguments.replaced(large, self._schema, other)
                (index,) = (s.index for s in changed.tensors if s.name == slot.name)
                yield from self._made(changed, {index: "hard/0"}, "." + other.name)

    def _sparse(self, slot: TensorSlot) -> list[Sample]:
        large = self._enlarged([slot], _SPARSE)
        return self._made(large, {slot.index: "hard/sparse"}, ".sparse") if large else []

    def _along(self, slot: TensorSlot, kind: str) -> Iterator[Sample]:
        """Yield samples that are long in one dimension after the other, and those with a flag turned.

        An op may take elements of that dimension for a row.
        """
        for group in self._groups:
            if slot.index in _slots(group) and (long := self._lengthened(group, _LONG)):
                along = f".{label(self._source, group.places)}"
                yield from self._made(long, {slot.index: kind}, along)
                yield from self._turned(long, slot, kind, along)

    def _turned(self, sample: Sample, slot: TensorSlot, kind: str, more: str) -> Iterator[Sample]:
        """Yield a sample with each of its flags turned, and an argument filled by a kind of values."""
        for other in arguments.others(self._source, self._schema, pointwise=False):
            if other.is_flag and other.formal.name not in self._fixed:
                turned = arguments.replaced(sample, self._schema, other)
                (index,) = (s.index for s in turned.tensors if s.name == slot.name)
                yield from self._made(turned, {index: kind}, f"{more}.{other.name}")

    def _alike(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples in which all elements of an argument are equal, or its only one is hard."""
        for value in (_ALIKE if slot.numel > 1 else _ALONE)[self._source.base]:
            yield from self._made(self._source, {slot.index: f"hard/all/{value}"}, f".{value}")

    def _with_flags(self, slot: TensorSlot) -> Iterator[Sample]:
        """Yield samples whose argument is infinite throughout and in which a flag is turned: it may be about that."""
        if self._source.base == "float32":
            yield from self._turned(self._source, slot, "hard/all/inf", ".inf")

    def _made(self, large: Sample, kinds: dict[int, str], more: str = "", dtypes: tuple[str, ...] = ()) -> list[Sample]:
        """Return a sample for each limit that some dtypes need. ``more`` is a part of its name.

        ``dtypes``: in which to try it; if empty, those of the source.
        """
        by_limit: dict[str, list[str]] = {}
        for dtype in arguments.defined(dtypes or self._dtypes, more):
            limit = self._limit(large, kinds, dtype)
            if limit is not None:
                by_limit.setdefault(limit, []).append(dtype)
        named = "x".join(large.tensors[i].name for i in kinds)
        found = []
        for limit, taken in by_limit.items():
            name = f"{self._source.name}.hard={named}{more}" + limit.replace("/", ".")
            sample = _with_fills(large, kinds, limit)
            found.append(replace(sample, name=name, dtypes=tuple(taken), axis=AXIS))
        return found

    def _limit(self, large: Sample, kinds: dict[int, str], dtype: str) -> str | None:
        """Return the first limit under which CPU takes the values; None if it takes them under none."""
        if not all(fills.has(kind, large.tensors[i].dtype or dtype) for i, kind in kinds.items()):
            return None
        for limit in LIMITS if not any(kind.startswith(_OF_ONE_NUMBER) for kind in kinds.values()) else LIMITS[:1]:
            if ran := self._trials.run(_with_fills(large, kinds, limit), dtype):
                held = {large.tensors[i].dtype or dtype for i in kinds}
                target = "" if limit else _integer_of(held, ran)
                return f"/{target}" if target else limit
        return None

    def _enlarged(self, slots: Sequence[TensorSlot], elements: int) -> Sample | None:
        """Return the sample with so many elements in each of some arguments; None if no size makes it so large.

        Of several sizes, it is the one that gives the largest results: a NaN spreads over the rest of its row.
        """
        wanted = {s.index for s in slots}
        found: list[Ran] = []
        for group in self._groups:
            if wanted <= _slots(group):
                per_index = min(s.numel // max(group.size, 1) for s in slots)
                n = max(group.size, math.ceil(elements / max(per_index, 1)))
                change = dict.fromkeys(group.places, n)
                for sample in filled(self._source, resized(self._source, change), change, self._values):
                    if ran := self._trials.run(sample, self._dtypes[0]):
                        found.append(ran)
                        break
        best = max(found, key=lambda ran: sum(map(math.prod, ran.shapes)), default=None)
        return best.sample if best else None


def _few(others: Iterable[Other]) -> list[Other]:
    """Return a few values of arguments: the first of each, then the second of each, and extreme numbers.

    None is a dimension or a dtype.
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
    """Whether a number is infinite, an integer that float32 does not hold, or one with large powers."""
    large = type(value) is int and value in (BEYOND_FLOAT, arguments.POWER)
    return large or (isinstance(value, float) and math.isinf(value))


def _slots(group: Group) -> set[int]:
    return {place.slot for place in group.places if isinstance(place, Extent)}


def _integer_of(held: set[str], ran: Ran) -> str:
    """Return the integer dtype that floats are converted to; "" if the results are of another kind."""
    floats = any(kind_of(dtype) in ("float", "complex") for dtype in held)
    return ran.dtypes[0] if floats and {kind_of(d) for d in ran.dtypes} == {"int"} else ""


def _with_fills(sample: Sample, kinds: dict[int, str], limit: str) -> Sample:
    slots = [replace(s, fill=kinds[s.index] + limit) if s.index in kinds else s for s in sample.tensors]
    mixed = ("hard/sparse" + limit, "hard/last")  # with values made from those that are stored
    slots = [replace(s, source=s.source or s.numel) if s.fill.startswith(mixed) else s for s in slots]
    return with_tensors(sample, slots)
