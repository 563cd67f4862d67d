"""Pointwise arithmetic of two or three tensors, with type promotion and broadcasting."""

from __future__ import annotations

from conformance.ops.family import EXACT, SUMMED, TRANSCENDENTAL, Family, T, own, words

_EXACT = words(
    "__and__ __iand__ __or__ __ior__ __xor__ __ixor__ __lshift__ __ilshift__ __rshift__ __irshift__ bitwise_and "
    "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign gcd lcm nextafter logical_and logical_or "
    "logical_xor heaviside"
)

FAMILY = Family(
    "pointwise_binary",
    _EXACT
    + words(
        "add addcdiv addcmul _add_relu arctan2 atan2 complex dist div divide float_power floor_divide fmod "
        "hypot igamma igammac ldexp lerp logaddexp logaddexp2 mul multiply polar pow remainder rsub sub "
        "subtract true_divide xlogy _test_serialization_subcmul"
    ),
    but={
        **{name: {"tolerance": EXACT} for name in _EXACT},
        # What cancels leaves the rounding of its terms behind.
        **{name: {"tolerance": SUMMED} for name in words("add sub subtract rsub addcmul addcdiv lerp _add_relu")},
        **{
            name: {"tolerance": TRANSCENDENTAL}
            for name in words("arctan2 atan2 float_power hypot igamma igammac ldexp logaddexp* polar pow xlogy dist")
        },
    },
    samples=(
        own("add.Tensor", "row_and_column", T((3, 1)), T((1, 4)), bases="float32 int64 bool complex64"),
        own("mul_.Tensor", "mask_of_ints", T((2, 3, 4)), T((3, 1)), bases="float32 int64 bool complex64"),
    ),
)
