"""Samples with a tensor in another dtype, of fewer dimensions, or on the host. They are not tried here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.corpus.model import DtypeArg, Sample, TensorSlot
from conformance.corpus.places import with_empty_outputs
from conformance.corpus.values import kind_of
from conformance.corpus.vary.arguments import Other, replaced
from conformance.torch_versions import is_composed

# Dtypes that an operand may have beside the cell's, one of each class.
_OPERANDS = ("bool", "uint8", "int32", "float64", "float16", "complex64")
# Parts of the names of operands: without the first dimensions, without any, and without any on the host.
ROW, SCALAR, HOST = "=row_", "=scalar", "=host_scalar"
BYTES = "=bytes"  # in the name of a mask with other bytes than 0 and 1
_OF_ROWS = ("int64", "float64")  # of an operand without the first dimensions
# Other dtypes for an index or a mask, in which an op may take or refuse it.
_INDICES = {"int64": ("int32", "float32"), "bool": ("uint8", "float32")}
_HALVES = ("bfloat16", "float16")
# Dtypes that every dtype is converted to.
_CONVERTED = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
# Arguments that torch's kernels copy to the device if they are a number on the host. Their ops are not pointwise, or
# have three operands.
_BROUGHT = {
    "index_put": ("values",), "_index_put_impl": ("values",), "_unsafe_index_put": ("values",),
    "index_fill": ("value",), "masked_fill": ("value",), "fill": ("value",), "where": ("condition", "self", "other"),
}  # fmt: skip


Form = tuple[str, Sample]  # the name of the changed tensor and its form, and the sample


def operands(source: Sample, schema: Any, pointwise: bool) -> Iterator[tuple[str, Sample]]:
    """Yield named samples, each with a tensor of another dtype, of no dimensions, or on the host."""
    two_tensors = sum(str(a.type) in ("Tensor", "Optional[Tensor]") and not a.is_out for a in schema.arguments) == 2
    first = 0 if two_tensors and not is_composed(source.overload) else 1
    on_host = range(first, 3 if pointwise and two_tensors else 0)
    yield from _operands(source, on_host, _BROUGHT.get(schema.name.removeprefix("aten::").rstrip("_"), ()))


def dtypes_of_operands(source: Sample) -> Iterator[Form]:
    """Yield named samples, each with an operand but the first in another dtype."""
    yield from _in_dtypes(source, _of_cell_dtype(source)[1:])


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


def indices(source: Sample) -> Iterator[tuple[str, Sample]]:
    """Yield named samples, each with an index or a mask of another dtype."""
    for slot in source.tensors:
        for dtype in _INDICES.get(slot.dtype or "", ()) if slot.pool and not slot.same_as else ():
            yield f"{slot.name}={dtype}", _slot(source, replace(slot, dtype=dtype))
            if dtype == "uint8":  # every byte but 0 is true
                yield f"{slot.name}{BYTES}", _slot(source, replace(slot, dtype=dtype, fill="hard/0"))


def misshapen(source: Sample) -> Iterator[Form]:
    """Yield named samples, each with a tensor of another shape: one element more in each row, turned, or flat."""
    slots = [s for s in source.tensors if s.pool and not s.same_as and s.numel > 1]
    for slot in slots if len(slots) > 1 else ():
        more = replace(slot, shape=(*slot.shape[:-1], slot.shape[-1] + 1), fill="choose", source=slot.numel)
        yield f"{slot.name}=longer", _slot(source, more)
        if slot.shape != slot.shape[::-1]:
            yield f"{slot.name}=turned", _slot(source, replace(slot, shape=slot.shape[::-1]))
        if len(slot.shape) > 1:
            yield f"{slot.name}=flat", _slot(source, replace(slot, shape=(slot.numel,)))
        elif len(slot.shape) == 1:
            yield f"{slot.name}=column", _slot(source, replace(slot, shape=(*slot.shape, 1)))


def beside_half(source: Sample) -> Iterator[Form]:
    """Yield half-precision dtypes, each with the sample in which all tensors but the first have float32."""
    slots = _of_cell_dtype(source)
    others = {s.index for s in slots[1:]}
    wide = [replace(s, dtype="float32") if s.index in others else s for s in source.tensors]
    for dtype in _HALVES if others else ():
        if dtype in source.dtypes:
            yield dtype, with_empty_outputs(source, wide)


def _operands(source: Sample, on_host: range, brought: Collection[str]) -> Iterator[tuple[str, Sample]]:
    """Yield the sample with an operand of another dtype, and of no dimensions or of one.

    The operands ``on_host``, by their places, and the arguments ``brought``, by their names, are on the host as well.
    """
    slots = _of_cell_dtype(source)
    yield from _in_dtypes(source, slots[1:3])
    for i, slot in enumerate(slots[:3] if len(slots) > 1 else ()):
        if slot.written:
            continue
        one = replace(slot, shape=())
        yield f"{slot.name}=scalar", _slot(source, one)
        yield f"{slot.name}=scalar_float64", _slot(source, _in_dtype(one, "float64", source.base))
        for dtype in _OF_ROWS if len(slot.shape) > 1 and slot.shape[-1] > 1 else ():
            if dtype != source.base:
                yield (
                    f"{slot.name}{ROW}{dtype}",
                    _slot(source, _in_dtype(replace(slot, shape=slot.shape[-1:]), dtype, source.base)),
                )
        for dtype in ("", "float64", "int64", "int32") if i in on_host or slot.argument in brought else ():
            there = replace(one, on_host=True, dtype=dtype or one.dtype)
            yield f"{slot.name}{HOST}" + (f"_{dtype}" if dtype else ""), _slot(source, there)
        if i in on_host:
            large = replace(one, on_host=True, dtype="int64", fill="hard/all/max", source=1)
            yield f"{slot.name}=host_scalar_largest", _slot(source, large)
            tenth = replace(one, on_host=True, dtype="float64", fill="hard/all/0.1", source=1)
            yield f"{slot.name}=host_tenth_float64", _slot(source, tenth)
    for slot in source.tensors:
        if slot.argument in brought and slot.dtype and slot.pool and not slot.same_as:
            yield f"{slot.name}{HOST}", _slot(source, replace(slot, shape=(), on_host=True))


def _of_cell_dtype(source: Sample) -> list[TensorSlot]:
    """Return the slots with values of their own in the dtype of the cell."""
    return [s for s in source.tensors if s.pool and not s.same_as and s.dtype is None]


def _in_dtypes(source: Sample, slots: Sequence[TensorSlot]) -> Iterator[Form]:
    for slot in slots:
        for dtype in _OPERANDS:
            if dtype != source.base:
                yield f"{slot.name}={dtype}", _slot(source, _in_dtype(slot, dtype, source.base))


def _in_dtype(slot: TensorSlot, dtype: str, base: str) -> TensorSlot:
    """Return an operand in another dtype. Floats beside integers are not whole numbers."""
    if base == "int64" and kind_of(dtype) == "float":
        return replace(slot, dtype=dtype, fill="halves", source=slot.numel)
    return replace(slot, dtype=dtype)


def _slot(source: Sample, changed: TensorSlot) -> Sample:
    """Return the sample with one slot changed, and empty outputs."""
    return with_empty_outputs(source, (changed if s.index == changed.index else s for s in source.tensors))
