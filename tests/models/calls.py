"""Calls of models made by hand."""

from __future__ import annotations

from conformance.corpus.model import Sample, TensorSlot
from conformance.layouts import Placement, contiguous_stride
from conformance.models.model import ModelCall, Recording


def slot(index: int = 0, shape: tuple[int, ...] = (2, 3), dtype: str = "float32", **given: object) -> TensorSlot:
    """Return a tensor in a storage of its own."""
    fields: dict[str, object] = {"name": f"a{index}", "written": False, "pool": f"s{index}", **given}
    return TensorSlot(index, shape=shape, dtype=dtype, **fields)  # type: ignore[arg-type]  # of several types


def dense(of: TensorSlot) -> Placement:
    return Placement("contiguous", of.shape, contiguous_stride(of.shape), 0, of.numel)


def call(
    overload: str, *slots: TensorSlot, count: int = 1, made: int = 0, placed: tuple[Placement, ...] = ()
) -> ModelCall:
    """Return a call that is made ``count`` times. By default, it has one float32 tensor, and is contiguous."""
    tensors = slots or (slot(),)
    sample = Sample("call.0", overload, "float32", ("float32",), tensors, (), tensors)
    return ModelCall(sample, placed or tuple(map(dense, tensors)), (), made, {"inference": count})


def recording(*calls: ModelCall, name: str = "demo") -> Recording:
    return Recording(name, "A model", calls, {"versions": {"torch": "2.13.0"}})
