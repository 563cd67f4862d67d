"""Joining tensors."""

from __future__ import annotations

from conformance.ops.family import EXACT, Family, T, own, words

FAMILY = Family(
    "concatenation",
    words(
        "cartesian_prod cat _chunk_cat column_stack combinations concat concatenate dstack hstack "
        "pad_sequence row_stack stack _stack vstack"
    ),
    {"tolerance": EXACT, "moves": True},
    samples=(
        own("cat", "mixed_lengths", (T((2, 3)), T((1, 3)), T((0, 3))), 0, bases="float32 int64 bool complex64"),
        own("cat", "promoted", (T((2, 3)), T((2, 3), "ones", "int32")), 1, bases="float32"),
        own("stack", "last", (T((2, 3)), T((2, 3))), -1, bases="float32 int64 bool complex64"),
    ),
)
