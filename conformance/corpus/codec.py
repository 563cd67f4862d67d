"""Conversion of samples to and from compact JSON. No torch.

A sample is ``[name, base, dtype set, args, kwargs, tensors, raises]``. The dtype set is an index into the file's list
of sets. A generated sample also has its axis, and then a 1 if it is for backends' own kernels. Plain arguments stand
for themselves, a list is a tuple of arguments, and a dict with a single key is any other argument: ``{"t": i}`` tensor
i, ``{"d": name}`` dtype, ``{"D": name or 0}`` device, ``{"e": [kind, name]}`` layout or memory format, ``{"g": seed}``
generator, ``{"c": [re, im]}`` complex number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from conformance.corpus.model import (
    Arg,
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    Sample,
    TensorSlot,
)


def encode(sample: Sample, dtype_set: int) -> list[Any]:
    """Return a list for JSON. ``dtype_set`` is the index of ``sample.dtypes``."""
    return [
        sample.name,
        sample.base,
        dtype_set,
        [_encode_arg(a) for a in sample.args],
        {k: _encode_arg(a) for k, a in sample.kwargs},
        [_encode_slot(t) for t in sample.tensors],
        int(sample.raises),
        *([sample.axis] if sample.axis or sample.own_kernel else []),
        *([1] if sample.own_kernel else []),
    ]


def decode(overload: str, row: list[Any], dtype_sets: Sequence[tuple[str, ...]]) -> Sample:
    """Return the sample that :func:`encode` encoded.

    Raises ValueError, TypeError, KeyError or IndexError for invalid data.
    """
    name, base, dtype_set, args, kwargs, slots, raises, *more = row
    of_recorded: list[Any] = ["", 0]
    axis, own_kernel = [*more, *of_recorded[len(more) :]]
    tensors = tuple([_decode_slot(i, s) for i, s in enumerate(slots)])
    return Sample(
        name=name,
        overload=overload,
        base=base,
        dtypes=dtype_sets[dtype_set],
        args=tuple([_decode_arg(a, tensors) for a in args]),
        kwargs=tuple([(k, _decode_arg(a, tensors)) for k, a in kwargs.items()]) if kwargs else (),
        tensors=tensors,
        raises=bool(raises),
        axis=axis,
        own_kernel=bool(own_kernel),
    )


def _encode_slot(t: TensorSlot) -> list[Any]:
    row: list[Any] = [t.name, list(t.shape), t.dtype, int(t.written), t.pool, t.start]
    if t.fill:
        return [*row, t.same_as, int(t.on_host), t.fill, t.source]
    return [*row, t.same_as, int(t.on_host)] if t.same_as or t.on_host else row


def _decode_slot(index: int, row: list[Any]) -> TensorSlot:
    name, shape, dtype, written, pool, start, *more = row
    rest: list[Any] = ["", 0, "", 0]
    same_as, on_host, fill, source = [*more, *rest[len(more) :]]
    return TensorSlot(
        index, name, tuple(shape), dtype, bool(written), pool, start, same_as, bool(on_host), fill, source
    )


def _encode_arg(arg: Arg) -> Any:
    if isinstance(arg, tuple):
        return [_encode_arg(a) for a in arg]
    if type(arg) not in _KEYS:
        return arg
    key, payload = _KEYS[type(arg)]
    return {key: payload(arg)}


def _decode_arg(value: Any, tensors: tuple[TensorSlot, ...]) -> Arg:
    if isinstance(value, list):
        return tuple([_decode_arg(v, tensors) for v in value])
    if isinstance(value, dict):
        ((kind, payload),) = value.items()
        return tensors[payload] if kind == "t" else _SPECIAL[kind](payload)
    plain: Arg = value
    return plain


# The key of an argument that is written as a dict, and the value under this key.
_KEYS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    TensorSlot: ("t", lambda a: a.index),
    DtypeArg: ("d", lambda a: a.name),
    DeviceArg: ("D", lambda a: a.name or 0),
    EnumArg: ("e", lambda a: [a.kind, a.name]),
    GeneratorArg: ("g", lambda a: a.seed),
    ComplexArg: ("c", lambda a: [a.real, a.imag]),
}
# The inverse of ``_KEYS``, by key. Tensors are not among them: they are found by their index.
_SPECIAL: dict[str, Callable[[Any], Arg]] = {
    "d": DtypeArg,
    "D": lambda name: DeviceArg(name or ""),
    "e": lambda p: EnumArg(p[0], p[1]),
    "g": GeneratorArg,
    "c": lambda p: ComplexArg(p[0], p[1]),
}
