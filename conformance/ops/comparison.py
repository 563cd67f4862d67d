"""Comparisons: results of bool, or one of two values."""

from __future__ import annotations

from conformance.ops.family import EXACT, Family, T, own, words

FAMILY = Family(
    "comparison",
    words(
        "allclose eq equal fmax fmin ge greater greater_equal gt is_same_size isclose isin le less less_equal lt "
        "maximum minimum ne not_equal"
    ),
    {"tolerance": EXACT},
    samples=(
        own("isin.Scalar_Tensor", "among", 2, T((3, 4), "index:4"), bases="float32 int64"),
        own("isin.Tensor_Scalar", "among", T((3, 4), "index:4"), 2, bases="float32 int64"),
        own("isin.Tensor_Scalar", "inverted", T((3, 4), "index:4"), 2, invert=True, bases="float32 int64"),
        own("isin.Scalar_Tensor_out", "among", 2, T((3, 4), "index:4"), out=T((), "undefined", "bool")),
        own("isin.Tensor_Scalar_out", "among", T((3, 4), "index:4"), 2, out=T((3, 4), "undefined", "bool")),
    ),
)
