"""Reductions over some or all dimensions, and running ones."""

from __future__ import annotations

from conformance.ops.family import EXACT, SUMMED, Accumulation, Dtype, Equivalence, Family, T, Tolerance, own, words

_EXACT = words(
    "all any amax amin aminmax _aminmax max min argmax argmin count_nonzero cummax cummin _cummax_helper "
    "_cummin_helper hash_tensor"
)
_WITH_INDEX = words("max min cummax cummin _cummax_helper _cummin_helper")

FAMILY = Family(
    "reduction",
    _EXACT
    + words(
        "cummaxmin_backward cumprod cumprod_backward cumsum cumulative_trapezoid frobenius_norm logcumsumexp "
        "_logcumsumexp logsumexp mean nanmean nansum native_norm norm norm_except_dim nuclear_norm prod "
        "special_logsumexp std std_mean sum sum_to_size trace trace_backward trapezoid trapz "
        "value_selecting_reduction_backward var var_mean linalg_vector_norm linalg__powsum corrcoef cov diff "
        "gradient"
    ),
    {"tolerance": SUMMED},
    but={
        **{name: {"tolerance": EXACT} for name in _EXACT},
        **{name: {"tolerance": EXACT, "equivalence": ((1, Equivalence.INDEX_OF_EQUAL),)} for name in _WITH_INDEX},
        **{
            name: {"tolerance": EXACT, "equivalence": ((0, Equivalence.INDEX_OF_EQUAL),)}
            for name in words("argmax argmin")
        },
        "cumsum": {"tolerance": Tolerance(4.0, accumulation=Accumulation.ALL)},
        "cumprod": {"tolerance": Tolerance(8.0, accumulation=Accumulation.ALL)},
    },
    samples=(
        own("linalg__powsum", "vectors", T((3, 4)), 2, (1,), False),
        own("linalg__powsum", "all", T((3, 4)), 3, None, True),
        own("norm.ScalarOpt_dim_dtype", "rows", T((3, 4)), 2, (1,), True, dtype=Dtype("float64")),
        own(
            "norm.dtype_out",
            "rows",
            T((3, 4)),
            2,
            (1,),
            True,
            dtype=Dtype("float64"),
            out=T((3, 1), "undefined", "float64"),
        ),
    ),
)
