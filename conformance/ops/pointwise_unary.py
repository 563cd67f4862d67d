"""Pointwise functions of one tensor."""

from __future__ import annotations

from conformance.ops.family import EXACT, INF, NAN, TRANSCENDENTAL, Accumulation, Family, T, Tolerance, own, words

_EXACT = words(
    "abs absolute ceil conj_physical _conj_physical deg2rad fix floor frac imag nan_to_num neg negative positive "
    "rad2deg real round sgn sign signbit square trunc bitwise_not logical_not isfinite isinf isnan isneginf isposinf "
    "isreal clamp clamp_max clamp_min clip special_round _is_all_true _is_any_true frexp"
)
_SPECIAL = T((3, 4), (NAN, INF, -INF, 0.0, -0.0, 0.25, -0.25, 2.0, -2.0, NAN, 1.0, -1.0))
# No zeros: of two zeros with different signs, a bound may pick either.
_CLAMPED = T((3, 4), (NAN, INF, -INF, 0.5, -0.5, 0.25, -0.25, 2.0, -2.0, NAN, 1.0, -1.0))
_BOUNDS = T((3, 4), (0.125, NAN, 1.0, -1.0) * 3), T((3, 4), (1.0, 1.0, NAN, 0.5) * 3)
_ROUNDS = words("deg2rad frac rad2deg round sgn square special_round abs absolute conj_physical")
# Odd functions, among others. `frac` is left out: for a negative integer, C's modf gives -0, and x - trunc(x) gives 0.
_SIGNED = words(
    "abs absolute deg2rad rad2deg round special_round sgn square arcsin arcsinh arctan arctanh asin asinh atan atanh "
    "erf erfinv expm1 log1p reciprocal sin sinh sqrt tan tanh"
)

FAMILY = Family(
    "pointwise_unary",
    _EXACT
    + words(
        "acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh cos cosh digamma "
        "erf erfc erfinv exp exp2 expm1 i0 lgamma log log10 log1p log2 logit logit_backward mvlgamma "
        "polygamma reciprocal rsqrt sigmoid sigmoid_backward sin sinc sinh sqrt tan tanh tanh_backward"
    ),
    {"tolerance": TRANSCENDENTAL},
    but={
        **{name: {"tolerance": EXACT} for name in _EXACT if name not in _ROUNDS},
        **{name: {"signed_zeros": True} for name in _SIGNED},
        "clamp*": {"either_zero": True},
        # 1 - y * y cancels where y is near 1, and y * (1 - y) near 1.
        **{f"{name}_backward": {"tolerance": Tolerance(4.0, 2.0, Accumulation.FEW)} for name in ("tanh", "sigmoid")},
    },
    samples=(
        own("clamp", "special_values", _SPECIAL, -1.0, 1.0),
        own("clamp.Tensor", "special_values", _CLAMPED, *_BOUNDS),
        own("clamp_min", "special_values", _SPECIAL, 0.5),
        own("clamp_max", "special_values", _SPECIAL, 0.5),
        *[own(op, "special_values", _SPECIAL) for op in words("neg abs sign isnan isinf isfinite signbit sqrt rsqrt")],
    ),
)
