"""Sorting and what stands on order: top k, medians, quantiles, searches, unique values, histograms."""

from __future__ import annotations

from conformance.ops.family import EXACT, ROUNDED, Equivalence, Family, T, own, words

_WITH_INDEX = {"equivalence": ((1, Equivalence.INDEX_OF_EQUAL),)}

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
        **dict.fromkeys(words("kthvalue median mode nanmedian sort topk"), _WITH_INDEX),
        "argsort": {"equivalence": ((0, Equivalence.INDEX_OF_EQUAL),)},
        **{
            name: {"tolerance": ROUNDED}
            for name in words("histc histogram histogramdd _histogramdd* nanquantile quantile bincount")
        },
    },
    samples=(
        own("unique_dim_consecutive", "rows", T((4, 2), (1, 2, 1, 2, 3, 4, 1, 2)), 0, True, True,
            bases="float32 int64 bool"),
    ),
)  # fmt: skip
