"""Samples with other arguments, derived from the schema: one argument of a sample at a time is replaced.

A dimension that CPU refuses is kept as a sample that raises. No other refusal is kept: a device may do more than CPU.
What pointwise ops alone define alike on every device (infinite scalars; of two operands one on the host) is tried on
those alone. A composite kernel may make its result where the first operand is, which then is not on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, ComplexArg, DtypeArg, EnumArg, Sample, TensorSlot
from conformance.corpus.places import with_arguments, with_tensors
from conformance.corpus.vary.sizes import sources, two_dtypes
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import is_composed, schema_of

AXIS = "variants"

MOST = 40  # of one source

# Other values of an argument, by its type in the schema.
_NUMBERS: tuple[Arg, ...] = (0, 1, -1, 2, 3, True, 0.5, -1.5, 300, -70000)
_EXTREME: tuple[Arg, ...] = (1e10, float("inf"), float("nan"))
_FLOATS: tuple[Arg, ...] = (0.0, 1.0, -1.0, 0.5, 2.5, 1e-30, 1e30)
# What CPU makes of such a number in float16 depends on the number of elements that it fills.
_BEYOND_HALF = "=1e+30"
# Pinned memory belongs to a device, and no sample has a device of its own.
_KEPT = ("generator", "pin_memory")
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
_RESULTS = ("bool", "int32", "float64", "bfloat16", "complex64")


def generate(overload: Overload, samples: Sequence[Sample], trials: Trials, values: HasValues) -> Iterator[Sample]:  # noqa: ARG001
    """Yield samples of an overload with other arguments."""
    if overload.is_composite_implicit:
        return
    schema = schema_of(call_of(overload.name))
    given = {_key(s) for s in samples}
    pointwise = "pointwise" in overload.tags
    fixed = facts(overload.name).fixed
    for source in sources(samples):
        for name, variant in list(unlike(source, schema, pointwise))[:MOST]:
            if _key(variant) not in given and name.partition("=")[0] not in fixed:
                given.add(_key(variant))
                named = replace(variant, name=f"{source.name}.{name}", axis=AXIS)
                yield from _tried(named, source, trials, may_raise=name.partition("=")[0] in _DIMS)


def _key(sample: Sample) -> object:
    """What two samples that make the same call share."""
    return repr((sample.base, sample.args, sample.kwargs, sample.tensors))


def _tried(sample: Sample, source: Sample, trials: Trials, *, may_raise: bool) -> Iterator[Sample]:
    dtypes = two_dtypes(source)
    if sample.name.endswith(_BEYOND_HALF):
        dtypes = tuple(d for d in dtypes if d != "float16")
    ran = {d: ran.sample for d in dtypes if (ran := trials.run(sample, d))}
    if ran:
        yield replace(next(iter(ran.values())), dtypes=tuple(ran))
    elif may_raise and trials.raises(sample, dtypes[0]):
        yield replace(sample, dtypes=dtypes[:1], raises=True)


def unlike(source: Sample, schema: Any, pointwise: bool) -> Iterator[tuple[str, Sample]]:
    """Yield named samples, each with one argument replaced. None of them has been tried."""
    given = _by_name(source, schema)
    for formal in schema.arguments:
        if formal.is_out or formal.name in _KEPT:
            continue
        current = given.get(formal.name)
        more = _EXTREME if pointwise and str(formal.type).endswith("number") else ()
        for label, value in (*_other(formal, current, source), *((_spelled(v), v) for v in more)):
            yield f"{formal.name}={label}", _with(source, schema, formal, value)
    two_tensors = sum(str(a.type) in ("Tensor", "Optional[Tensor]") and not a.is_out for a in schema.arguments) == 2
    first = 0 if two_tensors and not is_composed(source.overload) else 1
    yield from _operands(source, range(first, 3 if pointwise and two_tensors else 0))


def _by_name(source: Sample, schema: Any) -> dict[str, Arg]:
    names = [a.name for a in schema.arguments if not a.kwarg_only]
    return {**dict(zip(names, source.args, strict=False)), **dict(source.kwargs)}


def _other(formal: Any, current: Arg, source: Sample) -> Iterator[tuple[str, Arg]]:
    """Yield other values of an argument, with names."""
    kind = str(formal.type)
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if optional and current is not None and not _is_enum(formal):
        yield "None", None
    make = _OTHERS.get(kind)
    if make is not None:
        for value in make(formal, current, source):
            if value != current or type(value) is not type(current):
                yield _spelled(value), value


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
    "number": lambda formal, current, source: iter((*_NUMBERS, ComplexArg(1.5, -0.5))),  # noqa: ARG005
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


def _with(source: Sample, schema: Any, formal: Any, value: Arg) -> Sample:
    """Return the sample with one argument that is no tensor replaced, or added."""
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
    """Yield the sample with an operand of another dtype, and with one of no dimensions: some also ``on_host``."""
    slots = [s for s in source.tensors if s.pool and not s.same_as and s.dtype is None]
    for slot in slots[1:3] if len(slots) > 1 else ():
        for dtype in _OPERANDS:
            if dtype != source.base:
                yield f"{slot.name}={dtype}", _slot(source, replace(slot, dtype=dtype))
    for i, slot in enumerate(slots[:3] if len(slots) > 1 else ()):
        if slot.written:
            continue
        one = replace(slot, shape=())
        yield f"{slot.name}=scalar", _slot(source, one)
        yield f"{slot.name}=scalar_float64", _slot(source, replace(one, dtype="float64"))
        for dtype in ("", "float64", "int64") if i in on_host else ():
            there = replace(one, on_host=True, dtype=dtype or one.dtype)
            yield f"{slot.name}=host_scalar" + (f"_{dtype}" if dtype else ""), _slot(source, there)


def _slot(source: Sample, changed: TensorSlot) -> Sample:
    """Return the sample with one slot changed; outputs are empty, for the call to resize."""
    slots = [changed if s.index == changed.index else s for s in source.tensors]
    return with_tensors(source, [s if s.pool else replace(s, shape=(0,)) for s in slots])
