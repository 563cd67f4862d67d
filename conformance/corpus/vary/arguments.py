"""Other values for the non-tensor arguments of a sample, by their types in the schema. They are not tried here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice, product
from typing import Any

from conformance.corpus.drafts import SEED
from conformance.corpus.model import BEYOND_FLOAT, Arg, ComplexArg, DtypeArg, EnumArg, GeneratorArg, Sample, TensorSlot
from conformance.corpus.places import with_arguments

#: As an exponent, it gives integers that float64 cannot hold exactly but that fit in 64 bits.
POWER = 7
# Other values of an argument, by its type in the schema. float32 represents neither 0.1 nor BEYOND_FLOAT exactly.
_NUMBERS: tuple[Arg, ...] = (0, 1, -1, 2, 3, True, 0.5, -1.5, 300, -70000, POWER, 0.1, BEYOND_FLOAT)
_EXTREME: tuple[Arg, ...] = (1e10, float("inf"), float("nan"))
_FLOATS: tuple[Arg, ...] = (0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e30, 0.1)
# Infinite orders of norms, which have their own definition, and the names of arguments that are orders. A probability
# may also be called ``p``, and every op refuses an infinite one.
_ORDERS: tuple[Arg, ...] = (float("inf"), float("-inf"))
_OF_ORDER = ("ord", "p", "norm_type")
# CPU's conversion of this number to float16 depends on the number of elements that it fills.
_BEYOND_HALF = 1e30
# A norm of this order is infinite, except for a single element, whose absolute value CPU takes.
_BEYOND_POWERS = -70000
# In place of these numbers, CPU writes infinity into complex32, but torch's conversion of numbers raises an error.
_BEYOND_COMPLEX_HALF = (-70000, BEYOND_FLOAT, 1e10, 1e30)
# Pinned memory belongs to a device, and no sample has a device of its own.
_KEPT = ("pin_memory",)
# Arguments that name dimensions.
_DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "axis", "axes", "start_dim", "end_dim", "axis0", "axis1")
# Arguments that are the sizes of a result.
_SIZES = ("size", "shape")
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last")
# Words that a string argument may be, by its name.
_WORDS = {
    "rounding_mode": ("trunc", "floor"), "approximate": ("none", "tanh"),
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "ord": ("fro", "nuc"), "side": ("left", "right"), "mode": ("reduced", "complete", "r"), "UPLO": ("L", "U"),
    "padding": ("same", "valid"), "driver": ("gelsy", "gels"), "indexing": ("ij", "xy"),
}  # fmt: skip
# Parts of the names of arguments that are members of an enumeration, and the number of members to try.
_ENUMERATIONS, _MEMBERS = ("mode", "reduction"), 3
_MOST_FLAGS = 4  # of a list
_FEW = 3  # values of an argument
_RESULTS = ("bool", "int32", "float64", "bfloat16", "complex64")
# An integer that 32 bits do not hold.
LARGE = 2**40


@dataclass(frozen=True, slots=True)
class Other:
    """Another value of a non-tensor argument."""

    formal: Any  # the argument in the schema
    value: Arg

    @property
    def name(self) -> str:
        """The argument and the value, e.g. ``keepdim=True``."""
        return f"{self.formal.name}={_spelled(self.value)}"

    @property
    def is_default(self) -> bool:
        """Whether the value is the argument's default in the schema."""
        default = self.formal.default_value if self.formal.has_default_value() else None
        return type(default) is type(self.value) and bool(default == self.value)

    @property
    def is_real(self) -> bool:
        """Whether the argument accepts a number of any type, and the value is not complex."""
        of_any = str(self.formal.type).removeprefix("Optional[").startswith("number")
        return of_any and not isinstance(self.value, ComplexArg)

    @property
    def kind(self) -> tuple[str, type]:
        """The argument and the type of the value."""
        return self.formal.name, type(self.value)

    @property
    def is_flag(self) -> bool:
        """Whether the argument is true or false."""
        return isinstance(self.value, bool) and str(self.formal.real_type) == "bool"

    @property
    def is_dim(self) -> bool:
        """Whether the argument names dimensions."""
        return names_dimensions(self.formal)


def names_dimensions(formal: Any) -> bool:
    """Return whether an argument in a schema names dimensions."""
    return formal.name in _DIMS


def is_size(formal: Any) -> bool:
    """Return whether an argument in a schema is the sizes of a result."""
    return formal.name in _SIZES


def is_enumeration(formal: Any) -> bool:
    """Return whether an argument in a schema, if it is an integer, is a member of an enumeration."""
    return any(word in formal.name for word in _ENUMERATIONS)


def selects(other: Other) -> bool:
    """Return whether a value is a flag, a word, or a member of an enumeration."""
    enumerated = is_enumeration(other.formal) and other.value in range(_MEMBERS)
    return other.is_flag or isinstance(other.value, str) or (enumerated and type(other.value) is int)


def defined(dtypes: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the dtypes in which CPU's result is defined for the values that a sample's ``name`` contains."""
    if any(f"={number}" in name for number in _BEYOND_COMPLEX_HALF):
        dtypes = tuple(d for d in dtypes if d != "complex32")
    if "=complex64" in name:  # torch 2.15 promotes bfloat16 with it to a dtype that earlier versions lack
        dtypes = tuple(d for d in dtypes if d != "bfloat16")
    if f"ord={_BEYOND_POWERS}" in name:
        return ()
    if f"={_BEYOND_HALF}" in name:
        return tuple(d for d in dtypes if d != "float16")
    return tuple(d for d in dtypes if d in ("float64", "int64")) if f"exponent={BEYOND_FLOAT}" in name else dtypes


def spread(of: Sequence[Other]) -> Sequence[Other]:
    """Return all values of an argument if they are few, else the first, the number 1, the last, and a middle one.

    Many kernels treat a count or a size of 1 separately.
    """
    if len(of) <= _FEW:
        return of
    ones = [o for o in of if type(o.value) is int and o.value == 1 and not o.is_dim]
    return list(dict.fromkeys([of[0], *ones, of[-1], of[len(of) // 2]]))


def others(source: Sample, schema: Any, pointwise: bool) -> Iterator[Other]:
    """Yield other values of each non-tensor argument. They have not been tried."""
    given = by_name(source, schema)
    for formal in schema.arguments:
        if formal.is_out or formal.name in _KEPT:
            continue
        more = _EXTREME if pointwise and str(formal.type).endswith("number") else ()
        for value in (*_other(formal, given.get(formal.name), source), *more):
            yield Other(formal, value)


def by_name(source: Sample, schema: Any) -> dict[str, Arg]:
    """Return the arguments that a sample gives, by their names in the op's schema."""
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
    """Yield other integers.

    For a dimension: every valid number, and the first invalid number at both ends. For a dtype or a memory format: some
    members of torch's enumeration.
    """
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
        yield from dict.fromkeys((0, 1, -1, n + 1, n - 1, 2 * n, *(range(_MEMBERS) if is_enumeration(formal) else ())))
        if formal.name != "reduction":  # an enumeration
            yield LARGE


def _numbers(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:  # noqa: ARG001
    """Yield numbers of each kind.

    ``alpha`` and ``beta`` are complex only in complex samples: CPU does not check them if nothing is multiplied.
    """
    yield from _NUMBERS
    if source.base == "complex64" or formal.name not in ("alpha", "beta"):
        yield ComplexArg(1.5, -0.5)
    yield from _orders(formal)


def _floats(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:  # noqa: ARG001
    yield from _FLOATS
    yield from _orders(formal)


def _orders(formal: Any) -> Iterator[Arg]:
    if formal.name in _OF_ORDER:
        yield from _ORDERS


def _lists(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:
    """Yield lists of integers.

    For dimensions: each one alone, none, all, all counted from the end, one out of range, and one twice. For other
    lists: a few lists that differ. For sizes: also the shape of the first tensor.
    """
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
        if is_size(formal) and source.tensors:
            yield source.tensors[0].shape


def _masks(formal: Any, current: Arg, source: Sample) -> Iterator[Arg]:  # noqa: ARG001
    """Yield every list of the same number of flags, such as a mask of the requested results."""
    if isinstance(current, tuple) and len(current) <= _MOST_FLAGS:
        yield from product((True, False), repeat=len(current))


_OTHERS: dict[str, Callable[[Any, Arg, Sample], Iterator[Arg]]] = {
    "bool": lambda formal, current, source: iter((True, False)),  # noqa: ARG005
    "number": _numbers,
    "float": _floats,
    "int": _ints,
    "List[int]": _lists,
    "List[bool]": _masks,
    "Generator": lambda formal, current, source: iter((GeneratorArg(SEED),)),  # noqa: ARG005
    "str": lambda formal, current, source: iter(_WORDS.get(formal.name, ())),  # noqa: ARG005
}


def _spelled(value: Arg) -> str:
    if isinstance(value, tuple):
        return "x".join(_spelled(v) for v in value) or "empty"
    if isinstance(value, (DtypeArg, EnumArg)):
        return str(value.name)
    if isinstance(value, GeneratorArg):
        return str(value.seed)
    return f"{value.real}+{value.imag}j" if isinstance(value, ComplexArg) else str(value)


def replaced(source: Sample, schema: Any, other: Other) -> Sample:
    """Return the sample with one non-tensor argument replaced or added.

    A list of integers with the length of a list of dimensions, such as the ``shifts`` of ``roll``, gets the length of
    the new list of dimensions. It does not change if the new list is empty, which may stand for all dimensions.
    """
    sample = _with(source, schema, other)
    given = by_name(source, schema)
    old, new = given.get(other.formal.name), other.value
    if other.is_dim and isinstance(old, tuple) and isinstance(new, tuple) and old and new:
        for formal in schema.arguments:
            beside = given.get(formal.name)
            if isinstance(beside, tuple) and len(beside) == len(old) and not names_dimensions(formal):
                values = tuple(n + i for i, n in enumerate(islice(cycle(beside), len(new))) if isinstance(n, int))
                sample = _with(sample, schema, Other(formal, values)) if len(values) == len(new) else sample
    return sample


def _with(source: Sample, schema: Any, other: Other) -> Sample:
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
