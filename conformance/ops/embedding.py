"""Embedding tables and bags, forward and backward."""

from __future__ import annotations

from conformance.ops.family import SUMMED, Family, T, own, words

_INDEX = T((4,), (1, 0, 2, 1), "int64")

FAMILY = Family(
    "embedding",
    words(
            "embedding embedding_backward embedding_bag _embedding_bag* embedding_dense_backward embedding_renorm "
            "embedding_sparse_backward"
        ),
    {"tolerance": SUMMED},
    but={
        "embedding_sparse_backward": {"cannot": "makes a sparse tensor"},
        "_embedding_bag_sparse_backward": {"cannot": "makes a sparse tensor"},
        "_embedding_bag_dense_backward": {"doubtful": ("aliased",)},
        # The mode and the fast path decide which of the bookkeeping results are filled. Offsets are copied as if they
        # were contiguous, which embedding_bag ensures before it calls these ops.
        "_embedding_bag": {"undefined": (1, 2, 3), "overruns": ("expanded", "overlapping", "mixed")},
        "_embedding_bag_forward_only": {"undefined": (1, 2, 3), "overruns": ("expanded", "overlapping", "mixed")},
    },
    samples=(
        own("embedding", "beyond_the_end", T((5, 3)), T((2,), (1, 7), "int64"), raises=True),
        own("embedding_renorm_", "to_one", T((5, 3)), _INDEX, 1.0, 2.0),
        own("_embedding_bag_dense_backward", "sum", T((2, 3)), _INDEX, T((4,), (0, 0, 1, 1), "int64"),
            T((2,), (2, 2), "int64"), T((0,), "zeros", "int64"), 5, False, 0, None, -1),
    ),
)  # fmt: skip
