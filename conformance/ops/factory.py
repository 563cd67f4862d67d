"""Factories: tensors from sizes and numbers alone, and fills."""

from __future__ import annotations

from conformance.ops.family import EXACT, Accumulation, Device, Dtype, Family, T, Tolerance, own, words

_UNDEFINED = words("empty empty_like empty_permuted empty_strided new_empty new_empty_strided empty_quantized")

FAMILY = Family(
    "factory",
    _UNDEFINED
    + words(
        "arange _dim_arange _efficientzerotensor eye fill full full_like linspace logspace new_full new_ones "
        "new_zeros _new_zeros_with_same_feature_meta ones ones_like range scalar_tensor zero zeros zeros_like "
        "from_file _spdiags"
    ),
    {"tolerance": EXACT},
    but={
        **{name: {"undefined": (0,)} for name in _UNDEFINED},
        # start + i * step: three roundings, and it cancels where it passes zero
        **{
            name: {"tolerance": Tolerance(2.0, accumulation=Accumulation.FEW)}
            for name in words("arange linspace range")
        },
        "range.out_": {"tolerance": Tolerance(2.0, accumulation=Accumulation.FEW), "cpu_alone": True},
        # Powers of other bounds exceed small integers, and C++ does not define their conversion.
        "logspace": {
            "tolerance": Tolerance(2.0, accumulation=Accumulation.FEW),
            "fixed": ("start", "end", "base"),
        },
        # Negative bounds wrap, and their powers exceed uint8: C++ does not define their conversion.
        **{
            f"logspace.{kinds}_out": {"undefined_in": ("uint8",)}
            for kinds in words("Tensor_Tensor Tensor_Scalar Scalar_Tensor")
        },
        # This dtype has no zero: the CPU's shortcut rounds it, but fill_ raises on every device (also on CPU).
        "scalar_tensor": {"undefined_in": ("float8_e8m0fnu",)},
        "from_file": {"cannot": "maps a file into memory; a file has no device"},
        "empty_quantized": {"cannot": "makes a quantized tensor"},
        "_spdiags": {"cannot": "makes a sparse tensor"},
    },
    samples=(
        own("range.out", "by_two", 1, 9, 2, out=T((5,), "undefined"), bases="float32 int64"),
        own(
            "_efficientzerotensor",
            "three_by_four",
            (3, 4),
            dtype=Dtype(),
            device=Device(),
            bases="float32 int64 bool complex64",
        ),
        own("range.out_", "to_nine", 1, 9, out=T((9,), "undefined"), bases="float32 int64"),
        own("fill_.Tensor", "of_one", T((3, 4)), T((), (3.0,)), bases="float32 int64 bool complex64"),
    ),
)
