"""Samples made by hand, for tests of what is done with samples."""

from __future__ import annotations

from conformance.corpus.model import Arg, Sample, TensorSlot

FLOATS = ("float32", "bfloat16")


def slot(index: int, name: str, shape: tuple[int, ...], dtype: str | None = None, written: bool = False) -> TensorSlot:
    """A slot with values; ``values`` below makes them up."""
    return TensorSlot(index, name, shape, dtype, written, pool="int64" if dtype == "int64" else "float32")


def sample(overload: str, *args: Arg, name: str = "hand.made", dtypes: tuple[str, ...] = FLOATS) -> Sample:
    """A sample of positional arguments."""
    tensors = tuple(a for a in args if isinstance(a, TensorSlot))
    return Sample(name, overload, "float32", dtypes, tuple(args), (), tensors)
