"""Reductions over some or all dimensions, and running reductions."""

from __future__ import annotations

from conformance.ops.family import (
    EXACT,
    INF,
    NAN,
    SUMMED,
    Accumulation,
    Dtype,
    Equivalence,
    Family,
    Own,
    T,
    Tolerance,
    own,
    words,
)

_EXACT = words(
    "all any amax amin aminmax _aminmax max min argmax argmin count_nonzero cummax cummin _cummax_helper "
    "_cummin_helper hash_tensor"
)
_WITH_INDEX = words("cummax cummin")
_HELPERS = words("_cummax_helper _cummin_helper")


def _extremes() -> tuple[Own, ...]:
    """Return samples with special values and with ties: NaN wins, then the first of equal elements."""
    special = T((3, 5), (1.0, NAN, 2.0, -1.0, 3.0, INF, 1.0, -INF, 2.0, 1.0, NAN, -INF, 3.0, NAN, INF))
    ties = T((3, 5), (2.0, 5.0, 5.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0, 4.0, 2.0, 4.0, 1.0))
    rows: list[tuple[str, tuple[int, ...]]] = [
        (op, (1,)) for op in words("amax amin max.dim min.dim argmax argmin cummax cummin")
    ]
    rows += [(op, ()) for op in words("max min argmax argmin")]
    samples = [own(op, f"special_values{len(dim) or ''}", special, *dim) for op, dim in rows]
    samples += [own(op, f"ties{len(dim) or ''}", ties, *dim, bases="float32 int64") for op, dim in rows]
    return (*samples, own("aminmax", "special_values", special, dim=1))


def _long() -> tuple[Own, ...]:
    """Return samples with enough terms to show the loss of a narrow accumulator."""
    rows, line = T((2, 1500), "uniform"), T((2000,), "uniform")
    whole = T((3, 40), "arange")
    samples = [own(op, "long_rows", rows, (1,)) for op in words("sum.dim_IntList mean.dim")]
    samples += [own(op, "long", line) for op in words("sum mean")]
    samples += [own("sum.dim_IntList", "long_columns", T((700, 3), "uniform"), (0,), True)]
    samples += [own(op, "long", whole, 1, bases="int64") for op in words("cumsum cumprod")]
    return (*samples, own("sum.dim_IntList", "whole_numbers", whole, (1,), bases="int64 bool"))


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
        **{name: {"tolerance": EXACT, "either_zero": True} for name in _EXACT},
        **{
            name: {"tolerance": EXACT, "either_zero": True, "equivalence": ((1, Equivalence.INDEX_OF_EQUAL),)}
            for name in _WITH_INDEX
        },
        # These lack the checks of cummax and cummin: the CPU's loops write behind an argument without elements or
        # dimensions. A negated output, which the schema writes but does not return, leaves a damaged heap
        # (MathBitsFallback).
        **{
            name: {
                "tolerance": EXACT,
                "equivalence": ((1, Equivalence.INDEX_OF_EQUAL),),
                "overruns": ("zero_size", "zero_dim", "neg", "mixed"),
            }
            for name in _HELPERS
        },
        "cumsum": {"tolerance": Tolerance(4.0, accumulation=Accumulation.ALL)},
        "cumprod": {"tolerance": Tolerance(8.0, accumulation=Accumulation.ALL)},
    },
    samples=(
        *_extremes(),
        *_long(),
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
