"""Sorting and ops that depend on order: top k, medians, quantiles, searches, unique values, histograms."""

from __future__ import annotations

from conformance.ops.family import EXACT, INF, NAN, ROUNDED, Equivalence, Family, T, own, words

_WITH_INDEX = {"equivalence": ((1, Equivalence.INDEX_OF_EQUAL),)}
_WITH_TAKEN = {"equivalence": ((1, Equivalence.INDEX_OF_TAKEN),)}

# Rows with values that have no order, and zeros in separate rows: only a stable sort defines which of two comes first.
_SPECIAL = T((2, 5), (3.0, NAN, -1.0, INF, -INF, 2.0, NAN, 1.0, NAN, 2.0))
_ZEROS = T((2, 5), (0.0, 1.0, -0.0, -0.0, 2.0, -0.0, 0.0, 0.0, -1.0, 3.0))

FAMILY = Family(
    "sorting",
    words(
            "argsort bincount bucketize histc histogram histogramdd _histogramdd_bin_edges "
            "_histogramdd_from_bin_cts _histogramdd_from_bin_tensors kthvalue median mode msort nanmedian "
            "nanquantile quantile searchsorted sort topk _unique _unique2 unique_consecutive unique_dim "
            "unique_dim_consecutive"
        ),
    {"tolerance": EXACT},
    but={
        **dict.fromkeys(words("kthvalue mode nanmedian"), _WITH_INDEX),
        "sort": _WITH_TAKEN,
        # If not sorted, the results are in any order.
        "topk": {**_WITH_TAKEN, "fixed": ("sorted",)},
        "median": {**_WITH_INDEX, "doubtful": ("expanded",)},
        "argsort": {"equivalence": ((0, Equivalence.INDEX_OF_TAKEN),)},
        **{
            name: {"tolerance": ROUNDED}
            for name in words("histc histogram histogramdd _histogramdd* nanquantile quantile bincount")
        },
    },
    samples=(
        *[own(op, "special_values", _SPECIAL, 1, bigger) for op in ("sort", "argsort") for bigger in (False, True)],
        *[own("topk", "special_values", _SPECIAL, 3, 1, bigger) for bigger in (True, False)],
        own("topk", "all", T((3, 5)), 5, bases="float32 int64"),
        own("kthvalue", "special_values", _SPECIAL, 4, 1),
        own("median.dim", "special_values", _SPECIAL, 1),
        own("nanmedian.dim", "special_values", _SPECIAL, 1),
        *[own("sort.stable", "zeros_of_both_signs", _ZEROS, stable=True, dim=1, descending=down)
          for down in (False, True)],
        own("sort.values_stable", "zeros_of_both_signs", _ZEROS, stable=True, dim=1,
            values=T((2, 5), "undefined"), indices=T((2, 5), "undefined", "int64")),
        own("unique_dim_consecutive", "rows", T((4, 2), (1, 2, 1, 2, 3, 4, 1, 2)), 0, True, True,
            bases="float32 int64 bool"),
    ),
)  # fmt: skip
