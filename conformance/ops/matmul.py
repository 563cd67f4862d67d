"""Matrix and vector products."""

from __future__ import annotations

from conformance.ops.family import NAN, Accumulation, Dtype, Family, T, Tolerance, own, words

# Products of float8, with one scale each.
_A, _B = T((16, 16), "uniform", "float8_e4m3fn"), T((16, 16), "uniform", "float8_e4m3fn")
_ONE, _TO_FLOAT = T((), "ones", "float32"), Dtype("float32")
_PRODUCT = T((16, 16), "undefined", "float32")

# A beta of zero removes self from the sum, whatever values self has.
_ZERO_TIMES = (
    ("addmm", (3, 4), 12, (T((3, 5)), T((5, 4)))),
    ("addmv", (3,), 3, (T((3, 5)), T((5,)))),
    ("addr", (3, 4), 12, (T((3,)), T((4,)))),
    ("baddbmm", (2, 3, 4), 24, (T((2, 3, 5)), T((2, 5, 4)))),
    ("addbmm", (3, 4), 12, (T((2, 3, 5)), T((2, 5, 4)))),
)

FAMILY = Family(
    "matmul",
    words(
            "addbmm addmm _addmm_activation addmv addr baddbmm bilinear bmm chain_matmul dot einsum ger "
            "_grouped_mm inner _int_mm kron linalg_matmul linalg_multi_dot linalg_vecdot linear linear_backward "
            "matmul matmul_backward mm mv outer _scaled_grouped_mm _scaled_grouped_mm_v2 _scaled_mm _scaled_mm_v2 "
            "tensordot _trilinear vdot _compute_linear_combination"
        ),
    {"tolerance": Tolerance(4.0, accumulation=Accumulation.INNER)},
    but={
        # These also sum a batch of products, or sum over any dimensions.
        **{op: {"tolerance": Tolerance(4.0, accumulation=Accumulation.ALL)} for op in ("addbmm", "_trilinear")},
        "_int_mm": {"doubtful": ("expanded", "overlapping", "mixed")},
    },
    samples=(
        *[own(op, "beta_of_zero", T(shape, (NAN,) * size), *factors, beta=0, alpha=1, bases="float32 complex64")
          for op, shape, size, factors in _ZERO_TIMES],
        own("addmm.out", "beta_of_zero", T((3, 4), (NAN,) * 12), T((3, 5)), T((5, 4)), beta=0, alpha=1,
            out=T((3, 4), "undefined"), bases="float32 complex64"),
        own("mm", "long", T((3, 700), "uniform"), T((700, 2), "uniform"), bases="float32 complex64"),
        own("bmm", "long", T((2, 2, 300), "uniform"), T((2, 300, 3), "uniform"), bases="float32 complex64"),
        own("_int_mm", "square", T((17, 16), "arange", "int8"), T((16, 8), "arange", "int8"), bases="int64"),
        own("_int_mm.out", "square", T((17, 16), "arange", "int8"), T((16, 8), "arange", "int8"),
            out=T((17, 8), "undefined", "int32"), bases="int64"),
        own("_scaled_mm", "one_scale", _A, _B, _ONE, _ONE, None, None, _TO_FLOAT),
        own("_scaled_mm.out", "one_scale", _A, _B, _ONE, _ONE, None, None, _TO_FLOAT, out=_PRODUCT),
        own("_scaled_mm_v2", "one_scale", _A, _B, (_ONE,), (0,), (0,), (_ONE,), (0,), (0,), None, _TO_FLOAT),
        own("_scaled_mm_v2.out", "one_scale", _A, _B, (_ONE,), (0,), (0,), (_ONE,), (0,), (0,), None, _TO_FLOAT,
            out=_PRODUCT),
        own("_compute_linear_combination", "of_three", T((3, 2, 4)), T((5, 3)), bases="float32 complex64"),
        own("_compute_linear_combination.out", "of_three", T((3, 2, 4)), T((5, 3)), out=T((5, 2, 4), "zeros"),
            bases="float32 complex64"),
    ),
)  # fmt: skip
