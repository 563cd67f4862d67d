"""Samples with other arguments, derived from the schema: one argument of a sample is replaced, or two.

A dimension that CPU refuses is kept as a sample that raises, and so is a number that the op would write to integers
which cannot hold it. An op documents which dtypes its index and its mask have, so that a refusal of others is kept.
That of another operand's dtype is kept if torch refuses it for tensors without memory too. No other refusal is kept: a
device may do more than CPU.
What pointwise ops alone define alike on every device (infinite scalars; of two operands one on the host) is tried on
those alone. A composite kernel may make its result where the first operand is, which then is not on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, ComplexArg, DtypeArg, EnumArg, Sample, TensorSlot
from conformance.corpus.places import with_arguments, with_tensors
from conformance.corpus.values import holds, kind_of
from conformance.corpus.vary.sizes import Turns, sources
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import is_composed, schema_of

AXIS = "variants"

MOST = 48  # of one source, with one argument replaced
PAIRS = 24  # of one source, with two replaced; none of complex ones
CROSSED = 8  # arguments of one source that are replaced together with a tensor of another dtype or shape
_OF_ONE = 3  # values of an argument in pairs

# Other values of an argument, by its type in the schema.
# Neither 0.1 nor 2**24 + 1 is a number of float32.
_NUMBERS: tuple[Arg, ...] = (0, 1, -1, 2, 3, True, 0.5, -1.5, 300, -70000, 0.1, 2**24 + 1)
_EXTREME: tuple[Arg, ...] = (1e10, float("inf"), float("nan"))
_FLOATS: tuple[Arg, ...] = (0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e30, 0.1)
# What CPU makes of such a number in float16 depends on the number of elements that it fills.
_BEYOND_HALF = 1e30
# A norm of such an order is infinite, but of a single element, of which CPU takes the absolute value.
_BEYOND_POWERS = -70000
# CPU writes infinity in place of these numbers into complex32, where torch's conversion of numbers raises.
_BEYOND_COMPLEX_HALF = (-70000, 2**24 + 1, 1e10, 1e30)
# Odd, and even in float32, to which CPU rounds an exponent for vectors of elements, and not for the rest.
BEYOND_FLOAT = 2**24 + 1
# Pinned memory belongs to a device, and no sample has a device of its own.
_KEPT = ("generator", "pin_memory")
# Numbers that are written as they are, if the op does not round.
_WRITTEN = ("value", "fill_value")
# Arguments that name dimensions.
_DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "axis", "axes", "start_dim", "end_dim", "axis0", "axis1")
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last")
# Words that a string argument may be, by its name.
_WORDS = {
    "rounding_mode": ("trunc", "floor"), "approximate": ("none", "tanh"),
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "ord": ("fro", "nuc"), "side": ("left", "right"), "mode": ("reduced", "complete", "r"), "UPLO": ("L", "U"),
    "padding": ("same", "valid"), "driver": ("gelsy", "gels"), "indexing": ("ij", "xy"),
}  # fmt: skip
# Dtypes that an operand may have beside the cell's, one of each class.
_OPERANDS = ("bool", "uint8", "int32", "float64", "float16", "complex64")
_ROW, _SCALAR = "=row_", "=scalar"
_OF_ROWS = ("int64", "float64")  # of an operand without the first dimensions
_RESULTS = ("bool", "int32", "float64", "bfloat16", "complex64")
# Dtypes that an index or a mask may have, or is refused in.
_INDICES = {"int64": ("int32", "float32"), "bool": ("uint8", "float32")}
# An integer that 32 bits do not hold.
_LARGE = 2**40
# Dtypes that every dtype is converted to.
_CONVERTED = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


Form = tuple[str, Sample]  # what a tensor of the sample is, and the sample


@dataclass(frozen=True, slots=True)
class Other:
    """Another value of an argument that is no tensor."""

    formal: Any  # the argument in the schema
    value: Arg

    @property
    def name(self) -> str:
        """The argument and the value, e.g. ``keepdim=True``."""
        return f"{self.formal.name}={_spelled(self.value)}"

    @property
    def is_default(self) -> bool:
        """Whether it is what the schema says of a call without the argument."""
        default = self.formal.default_value if self.formal.has_default_value() else None
        return type(default) is type(self.value) and bool(default == self.value)

    @property
    def is_dim(self) -> bool:
        """Whether the argument names dimensions."""
        return names_dimensions(self.formal)


def names_dimensions(formal: Any) -> bool:
    """Return whether an argument in a schema names dimensions."""
    return formal.name in _DIMS


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:
    """Yield samples of an overload with other arguments."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    pointwise = "pointwise" in overload.tags
    given = {_key(s) for s in samples}
    for source in sources(samples, values):
        maker = _Maker(source, trials, given)
        ran: list[Other] = []
        for other in list(others(source, schema, pointwise))[:MOST]:
            variant = replaced(source, schema, other)
            known = _key(variant) in given
            found = list(maker.made(other.name, variant, other))
            yield from found
            if (known or not all(sample.raises for sample in found)) and other.value != _LARGE:
                ran.append(other)
        operand, index = list(operands(source, schema, pointwise)), list(_indices(source))
        taken: set[str] = set()
        for forms, refuses in ((operand, trials.raises_without_memory), (index, trials.refuses)):
            for name, sample in forms:
                found = list(maker.made(name, sample))
                yield from found
                taken |= {name for one in found if not one.raises}
                if _ROW not in name and _SCALAR not in name:  # refused for its size, which not every kernel checks
                    yield from maker.refused(name, sample, refuses)
        if source.base != "complex64":
            for one, two in _pairs(ran):
                yield from maker.made(f"{one.name}.{two.name}", replaced(replaced(source, schema, one), schema, two))
            operand, index = ([form for form in of if form[0] in taken] for of in (operand, index))
            for other, (name, sample) in _crossed(ran, operand, index):
                yield from maker.made(f"{other.name}.{name}", replaced(sample, schema, other))


def _key(sample: Sample) -> object:
    """What two samples that make the same call share."""
    return repr((sample.base, sample.args, sample.kwargs, sample.tensors))


def _pairs(ran: Sequence[Other]) -> list[tuple[Other, Other]]:
    """Return pairs of values of two arguments: those of the first values of every two arguments come first.

    None is a default, with which the pair is the other value alone.
    """
    by_formal: dict[str, list[Other]] = {}
    for other in ran:
        if not other.is_default:
            by_formal.setdefault(other.formal.name, []).append(other)
    found = [
        (i + j, one, two)
        for first, second in combinations(map(_spread, by_formal.values()), 2)
        for (i, one), (j, two) in product(enumerate(first), enumerate(second))
    ]
    return [(one, two) for _, one, two in sorted(found, key=lambda pair: pair[0])][:PAIRS]


def _crossed(ran: Sequence[Other], operand: Sequence[Form], index: Sequence[Form]) -> Iterator[tuple[Other, Form]]:
    """Yield one other value of each argument with each form of an index, and with one of an operand, in turns."""
    first = {other.formal.name: other for other in reversed(ran) if not other.is_default}
    for turn, other in enumerate(list(first.values())[:CROSSED]):
        for form in (*index, *operand[turn % max(len(operand), 1) :][:1]):
            yield other, form


def _spread(of: Sequence[Other]) -> Sequence[Other]:
    """Return a few values of an argument: all, or the first, the number 1, the last, and one in the middle.

    A count or a size of one is a case of its own in many kernels.
    """
    if len(of) <= _OF_ONE:
        return of
    ones = [o for o in of if type(o.value) is int and o.value == 1 and not o.is_dim]
    return list(dict.fromkeys([of[0], *ones, of[-1], of[len(of) // 2]]))


class _Maker:
    """Tries the variants of one source, each call once."""

    def __init__(self, source: Sample, trials: Trials, given: set[object]) -> None:
        self._source = source
        self._trials = trials
        self._given = given  # the calls that there are; those that were tried are added
        self._turns = Turns(source)
        self._facts = facts(source.overload)

    def made(self, name: str, variant: Sample, other: Other | None = None) -> Iterator[Sample]:
        """Yield the variant if it runs on CPU, and one that raises where a refusal of the ``other`` value counts."""
        if _key(variant) in self._given or any(word.partition("=")[0] in self._facts.fixed for word in name.split(".")):
            return
        self._given.add(_key(variant))
        sample = replace(variant, name=f"{self._source.name}.{name}", axis=AXIS)
        dtypes = self._dtypes(name, other)
        ran = {d: ran.sample for d in dtypes if (ran := self._trials.run(sample, d))}
        if ran:
            yield replace(next(iter(ran.values())), dtypes=tuple(ran))
        refused = tuple(d for d in self._to_refuse(dtypes, ran, other) if self._trials.raises(sample, d))
        if refused:
            yield replace(sample, name=sample.name + (".refused" if ran else ""), dtypes=refused, raises=True)

    def refused(self, name: str, variant: Sample, refuses: Callable[[Sample, str], bool]) -> Iterator[Sample]:
        """Yield the variant as one that raises, if it raises on CPU and the op itself ``refuses`` it."""
        sample = replace(variant, name=f"{self._source.name}.{name}", axis=AXIS)
        first = self._turns.first
        if self._trials.raises(sample, first) and refuses(sample, first):
            yield replace(sample, dtypes=(first,), raises=True)

    def _dtypes(self, name: str, other: Other | None) -> tuple[str, ...]:
        dtypes = defined(self._turns.of(name), name)
        small = [d for d in ("int8", "uint8") if d in self._source.dtypes and d not in dtypes]
        return (*dtypes, *small[:1]) if other and self._writes(other) else dtypes

    def _to_refuse(self, dtypes: Sequence[str], ran: Collection[str], other: Other | None) -> Sequence[str]:
        """Return the dtypes in which every device has to refuse the value, if CPU does."""
        if other and other.is_dim and not ran:
            return dtypes[:1]
        if other and self._writes(other):
            return [d for d in dtypes if d not in ran and not holds(d, other.value)]
        return ()

    def _writes(self, other: Other) -> bool:
        return other.formal.name in _WRITTEN and self._facts.tolerance.exact


def defined(dtypes: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the dtypes in which CPU does one thing with the values that a sample's ``name`` has."""
    if any(f"={number}" in name for number in _BEYOND_COMPLEX_HALF):
        dtypes = tuple(d for d in dtypes if d != "complex32")
    if f"ord={_BEYOND_POWERS}" in name:
        return ()
    if f"={_BEYOND_HALF}" in name:
        return tuple(d for d in dtypes if d != "float16")
    return tuple(d for d in dtypes if d in ("float64", "int64")) if f"exponent={BEYOND_FLOAT}" in name else dtypes


def others(source: Sample, schema: Any, pointwise: bool) -> Iterator[Other]:
    """Yield other values of each argument that is no tensor. None of them has been tried."""
    given = _by_name(source, schema)
    for formal in schema.arguments:
        if formal.is_out or formal.name in _KEPT:
            continue
        more = _EXTREME if pointwise and str(formal.type).endswith("number") else ()
        for value in (*_other(formal, given.get(formal.name), source), *more):
            yield Other(formal, value)


def operands(source: Sample, schema: Any, pointwise: bool) -> Iterator[tuple[str, Sample]]:
    """Yield named samples, each with a tensor of another dtype, of no dimensions, or on the host."""
    two_tensors = sum(str(a.type) in ("Tensor", "Optional[Tensor]") and not a.is_out for a in schema.arguments) == 2
    first = 0 if two_tensors and not is_composed(source.overload) else 1
    yield from _operands(source, range(first, 3 if pointwise and two_tensors else 0))


def converting(source: Sample, schema: Any) -> Iterator[tuple[str, str, Sample]]:
    """Yield samples in which a tensor is converted to another dtype: a name, the tensor's name, and the sample."""
    slots = [s for s in source.tensors if s.pool]
    read = [s for s in slots if not s.written]
    into = [a for a in schema.arguments if "ScalarType" in str(a.real_type)]
    for dtype in _CONVERTED:
        if len(slots) == 1 and len(into) == 1:
            sample = replaced(source, schema, Other(into[0], DtypeArg(dtype)))
            yield f"dtype={dtype}", slots[0].name, sample
        elif len(slots) == 2 and len(read) == 1:
            yield f"{read[0].name}={dtype}", read[0].name, _slot(source, replace(read[0], dtype=dtype))


def _indices(source: Sample) -> Iterator[tuple[str, Sample]]:
    """Yield named samples, each with an index or a mask of another dtype."""
    for slot in source.tensors:
        for dtype in _INDICES.get(slot.dtype or "", ()) if slot.pool and not slot.same_as else ():
            yield f"{slot.name}={dtype}", _slot(source, replace(slot, dtype=dtype))


def _by_name(source: Sample, schema: Any) -> dict[str, Arg]:
    names = [a.name for a in schema.arguments if not a.kwarg_only]
    return {**dict(zip(names, source.args, strict=False)), **dict(source.kwargs)}


def _other(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:
    """Yield other values of an argument."""
    kind = str(formal.type)
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if optional and current is not None and not _is_enum(formal):
        yield None
    make = _OTHERS.get(kind)
    if make is not None:
        for value in make(formal, current, source):
            if value != current or type(value) is not type(current):
                yield value


def _is_enum(formal: Any) -> bool:
    return str(formal.real_type).removeprefix("Optional[").removesuffix("]") in ("ScalarType", "Layout", "Device")


def _ints(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:
    """Integers: of a dimension every one, from both ends, and one too far; of an enumeration of torch its members."""
    real = str(formal.real_type)
    if "ScalarType" in real:
        yield from (DtypeArg(d) for d in _RESULTS)
    elif "MemoryFormat" in real:
        yield from (EnumArg("memory_format", name) for name in _MEMORY_FORMATS)
    elif "Layout" in real:
        return
    elif formal.name in _DIMS:
        rank = max((len(s.shape) for s in source.tensors), default=0)
        yield from (*range(-rank, rank), rank, -rank - 1)
    else:
        n = current if isinstance(current, int) else 1
        yield from (0, 1, -1, n + 1, n - 1, 2 * n)
        if formal.name != "reduction":  # an enumeration
            yield _LARGE


def _numbers(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:  # noqa: ARG001
    """Numbers of each kind. A factor of real tensors is real: CPU does not check it where nothing is multiplied."""
    yield from _NUMBERS
    if source.base == "complex64" or formal.name not in ("alpha", "beta"):
        yield ComplexArg(1.5, -0.5)


def _lists(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:
    """Lists of integers: of dimensions each alone, all, none, and from the end; of others, a few that differ."""
    rank = max((len(s.shape) for s in source.tensors), default=0)
    if formal.name in _DIMS:
        yield from ((d,) for d in range(rank))
        yield from ((), tuple(range(rank)), tuple(range(-1, -rank - 1, -1)), (rank,), (0, 0))
    elif isinstance(current, tuple) and current and all(isinstance(n, int) for n in current):
        first = current[0]
        yield from ((first,), tuple(2 for _ in current), tuple(1 for _ in current), tuple(0 for _ in current))
        if isinstance(first, int):
            yield (first + 1, *current[1:])
        yield current[::-1]


_OTHERS: dict[str, Callable[[Any, Arg, Sample], Iterator[Arg]]] = {
    "bool": lambda formal, current, source: iter((True, False)),  # noqa: ARG005
    "number": _numbers,
    "float": lambda formal, current, source: iter(_FLOATS),  # noqa: ARG005
    "int": _ints,
    "List[int]": _lists,
    "str": lambda formal, current, source: iter(_WORDS.get(formal.name, ())),  # noqa: ARG005
}


def _spelled(value: Arg) -> str:
    if isinstance(value, tuple):
        return "x".join(_spelled(v) for v in value) or "empty"
    if isinstance(value, (DtypeArg, EnumArg)):
        return str(value.name)
    return f"{value.real}+{value.imag}j" if isinstance(value, ComplexArg) else str(value)


def replaced(source: Sample, schema: Any, other: Other) -> Sample:
    """Return the sample with one argument that is no tensor replaced, or added."""
    formal, value = other.formal, other.value
    names = [a.name for a in schema.arguments if not a.kwarg_only]
    if formal.kwarg_only:
        kwargs = {**dict(source.kwargs), formal.name: value}
        return _reslotted(replace(source, kwargs=tuple(kwargs.items())))
    at = names.index(formal.name)
    args = list(source.args)
    if at < len(args):
        args[at] = value
        return _reslotted(replace(source, args=tuple(args)))
    kwargs = {**dict(source.kwargs), formal.name: value}
    return _reslotted(replace(source, kwargs=tuple(kwargs.items())))


def _reslotted(sample: Sample) -> Sample:
    """Return the sample with the slots that its arguments still name, numbered again."""
    kept: list[TensorSlot] = []

    def visit(_: tuple[int | str, ...], arg: Arg) -> Arg:
        if isinstance(arg, TensorSlot):
            kept.append(arg)
        return arg

    with_arguments(sample, visit)
    names = {s.name for s in kept}
    if len(kept) == len(sample.tensors) or any(s.same_as and s.same_as not in names for s in kept):
        return sample
    index = {s.index: replace(s, index=i) for i, s in enumerate(kept)}
    renumbered = with_arguments(sample, lambda _, arg: index[arg.index] if isinstance(arg, TensorSlot) else arg)
    return replace(renumbered, tensors=tuple(index.values()))


def _operands(source: Sample, on_host: range) -> Iterator[tuple[str, Sample]]:
    """Yield the sample with an operand of another dtype, and of no dimensions or of one: some also ``on_host``."""
    slots = [s for s in source.tensors if s.pool and not s.same_as and s.dtype is None]
    for slot in slots[1:3] if len(slots) > 1 else ():
        for dtype in _OPERANDS:
            if dtype != source.base:
                yield f"{slot.name}={dtype}", _slot(source, _in_dtype(slot, dtype, source.base))
    for i, slot in enumerate(slots[:3] if len(slots) > 1 else ()):
        if slot.written:
            continue
        one = replace(slot, shape=())
        yield f"{slot.name}=scalar", _slot(source, one)
        yield f"{slot.name}=scalar_float64", _slot(source, _in_dtype(one, "float64", source.base))
        for dtype in _OF_ROWS if len(slot.shape) > 1 and slot.shape[-1] > 1 else ():
            if dtype != source.base:
                yield (
                    f"{slot.name}{_ROW}{dtype}",
                    _slot(source, _in_dtype(replace(slot, shape=slot.shape[-1:]), dtype, source.base)),
                )
        for dtype in ("", "float64", "int64") if i in on_host else ():
            there = replace(one, on_host=True, dtype=dtype or one.dtype)
            yield f"{slot.name}=host_scalar" + (f"_{dtype}" if dtype else ""), _slot(source, there)
        if i in on_host:
            large = replace(one, on_host=True, dtype="int64", fill="hard/all/max", source=1)
            yield f"{slot.name}=host_scalar_largest", _slot(source, large)
            tenth = replace(one, on_host=True, dtype="float64", fill="hard/all/0.1", source=1)
            yield f"{slot.name}=host_tenth_float64", _slot(source, tenth)


def _in_dtype(slot: TensorSlot, dtype: str, base: str) -> TensorSlot:
    """Return an operand in another dtype; floats beside integers are no whole numbers."""
    if base == "int64" and kind_of(dtype) == "float":
        return replace(slot, dtype=dtype, fill="halves", source=slot.numel)
    return replace(slot, dtype=dtype)


def _slot(source: Sample, changed: TensorSlot) -> Sample:
    """Return the sample with one slot changed; outputs are empty, for the call to resize."""
    slots = [changed if s.index == changed.index else s for s in source.tensors]
    return with_tensors(source, [s if s.pool else replace(s, shape=(0,)) for s in slots])
