"""Samples made by hand, for tests of code that uses samples."""

from __future__ import annotations

from conformance.corpus.model import Arg, Sample, TensorSlot

FLOATS = ("float32", "bfloat16")


def slot(index: int, name: str, shape: tuple[int, ...], dtype: str | None = None, written: bool = False) -> TensorSlot:
    """Return a slot with values, which the test supplies."""
    return TensorSlot(index, name, shape, dtype, written, pool="int64" if dtype == "int64" else "float32")


def sample(overload: str, *args: Arg, name: str = "hand.made", dtypes: tuple[str, ...] = FLOATS) -> Sample:
    """Return a sample with positional arguments only."""
    tensors = tuple(a for a in args if isinstance(a, TensorSlot))
    return Sample(name, overload, "float32", dtypes, tuple(args), (), tensors)
