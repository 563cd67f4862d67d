"""Comparisons: results of bool, or one of two values."""

from __future__ import annotations

from conformance.ops.family import EXACT, INF, NAN, Family, Own, T, own, words

# Every pair that an order must decide. Zeros of both signs are equal, and the larger of them is not defined, so only
# comparisons get them.
_LEFT = T((3, 4), (NAN, 1.0, NAN, INF, -INF, INF, 2.0, -1.0, NAN, -INF, 3.0, 3.0))
_RIGHT = T((3, 4), (1.0, NAN, NAN, -INF, INF, INF, NAN, 2.0, INF, NAN, -3.0, 3.0))
_ZEROS = T((3, 4), (0.0, -0.0, 0.0, -0.0) * 3), T((3, 4), (-0.0, 0.0, 0.0, -0.0) * 3)


def _special_values() -> tuple[Own, ...]:
    comparisons = [f"{name}.Tensor" for name in words("eq ge gt le lt ne")]
    samples = [own(op, "special_values", _LEFT, _RIGHT) for op in [*comparisons, *words("fmax fmin maximum minimum")]]
    samples += [own(op, "zeros_of_both_signs", *_ZEROS) for op in comparisons]
    samples += [
        own(op, "ints_and_floats", T((3, 4)), T((3, 4), "normal", "float32"), bases="int64 bool")
        for op in [*comparisons, *words("maximum minimum")]
    ]
    out = T((3, 4), "undefined")
    return (*samples, *[own(f"{op}.out", "special_values", _LEFT, _RIGHT, out=out) for op in ("maximum", "minimum")])


FAMILY = Family(
    "comparison",
    words(
        "allclose eq equal fmax fmin ge greater greater_equal gt is_same_size isclose isin le less less_equal lt "
        "maximum minimum ne not_equal"
    ),
    {"tolerance": EXACT},
    but={name: {"either_zero": True} for name in words("fmax fmin maximum minimum")},
    samples=(
        own("isin.Scalar_Tensor", "among", 2, T((3, 4), "index:4"), bases="float32 int64"),
        own("isin.Tensor_Scalar", "among", T((3, 4), "index:4"), 2, bases="float32 int64"),
        own("isin.Tensor_Scalar", "inverted", T((3, 4), "index:4"), 2, invert=True, bases="float32 int64"),
        *_special_values(),
        own("isin.Scalar_Tensor_out", "among", 2, T((3, 4), "index:4"), out=T((), "undefined", "bool")),
        own("isin.Tensor_Scalar_out", "among", T((3, 4), "index:4"), 2, out=T((3, 4), "undefined", "bool")),
    ),
)  # fmt: skip
