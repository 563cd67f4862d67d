"""Pointwise arithmetic of two or three tensors, with type promotion and broadcasting."""

from __future__ import annotations

from conformance.ops.family import EXACT, SUMMED, TRANSCENDENTAL, Family, Own, T, own, words

_EXACT = words(
    "__and__ __iand__ __or__ __ior__ __xor__ __ixor__ __lshift__ __ilshift__ __rshift__ __irshift__ bitwise_and "
    "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift copysign gcd lcm nextafter logical_and logical_or "
    "logical_xor heaviside"
)

_ROUNDED_QUOTIENTS = words(
    "div.Tensor_mode div.Scalar_mode div.out_mode div.Scalar_mode_out div_.Tensor_mode div_.Scalar_mode "
    "divide.Tensor_mode divide.Scalar_mode divide.out_mode divide_.Tensor_mode divide_.Scalar_mode"
)


def _of_two_dtypes() -> tuple[Own, ...]:
    """Return samples whose operands have different dtypes, so that the op must find the dtype of the result."""
    matrix, half = T((3, 4)), T((), (2.5,), "float32")
    floats, doubles, bfloats = (T((3, 4), "positive", name) for name in ("float32", "float64", "bfloat16"))
    ints, bools = T((3, 4), "positive", "int64"), T((3, 4), "mask", "bool")
    samples: list[Own] = []
    for op in words("add.Tensor sub.Tensor mul.Tensor div.Tensor pow.Tensor_Tensor remainder.Tensor atan2"):
        samples.append(own(op, "ints_and_floats", matrix, floats, bases="int64 bool"))
        samples.append(own(op, "ints_and_one_float", matrix, half, bases="int64 bool"))
        samples.append(own(op, "floats_and_ints", matrix, ints, bases="float32 complex64"))
    for op in words("add.Tensor mul.Tensor"):
        samples.append(own(op, "and_doubles", matrix, doubles, bases="float32 int64"))
        samples.append(own(op, "and_bfloats", matrix, bfloats, bases="float32 int64"))
        samples.append(own(op, "and_bools", matrix, bools, bases="float32 int64 complex64"))
        samples.append(own(f"{op.removesuffix('Tensor')}Scalar", "fraction", matrix, 2.5, bases="int64 bool"))
        out = T((3, 4), "undefined", "float32")
        samples.append(
            own(f"{op.removesuffix('Tensor')}out", "ints_and_floats", matrix, floats, out=out, bases="int64")
        )
        in_place = op.replace(".", "_.")
        samples.append(own(in_place, "ints_cannot_hold_floats", matrix, floats, bases="int64", raises=True))
    return tuple(samples)


def _divided_by_zero() -> tuple[Own, ...]:
    """Return divisions of integers by zero, which raise an error: integers have no infinity."""
    matrix, zeros = T((3, 4)), T((3, 4), (1.0, 2.0, 0.0) * 4)
    ops = words("floor_divide remainder.Tensor fmod.Tensor")
    samples = [own(op, "by_zero", matrix, zeros, bases="int64", raises=True) for op in ops]
    modes = [
        own("div.Tensor_mode", mode, matrix, zeros, rounding_mode=mode, bases="int64", raises=True)
        for mode in ("floor", "trunc")
    ]
    return (*samples, *modes)


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
        **{name: {"signed_zeros": True} for name in words("div divide true_divide mul multiply")},
        # CPU multiplies the magnitude of a rounded quotient by its sign, and other devices round the quotient.
        **{name: {"signed_zeros": False} for name in _ROUNDED_QUOTIENTS},
        # After terms cancel, their rounding errors remain.
        **{name: {"tolerance": SUMMED, "signed_zeros": True} for name in words("add sub subtract rsub")},
        **{name: {"tolerance": SUMMED} for name in words("addcmul addcdiv lerp _add_relu")},
        **{
            name: {"tolerance": TRANSCENDENTAL}
            for name in words("float_power hypot igamma igammac logaddexp* polar pow xlogy")
        },
        **{name: {"tolerance": TRANSCENDENTAL, "signed_zeros": True} for name in words("arctan2 atan2")},
        # Other devices than CPU multiply by 2 ** other, which is infinite where the product is not.
        "ldexp": {"tolerance": TRANSCENDENTAL, "fixed": ("other",)},
        "dist": {"tolerance": SUMMED},
    },
    samples=(
        *_of_two_dtypes(),
        *_divided_by_zero(),
        own("add.Tensor", "row_and_column", T((3, 1)), T((1, 4)), bases="float32 int64 bool complex64"),
        own("mul_.Tensor", "mask_of_ints", T((2, 3, 4)), T((3, 1)), bases="float32 int64 bool complex64"),
    ),
)
