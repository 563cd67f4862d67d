"""Scatter and gather along a dimension."""

from __future__ import annotations

from conformance.ops.family import ADDED, EXACT, Family, T, own, words

_BEYOND = T((2, 3), (0, 1, 7, 1, 0, 1), "int64")

FAMILY = Family(
    "scatter_gather",
    words("gather gather_backward _gather_sparse_backward scatter scatter_add scatter_reduce"),
    {"tolerance": EXACT, "moves": True},
    but={
        **{
            name: {"tolerance": ADDED}
            for name in words(
                "scatter_add scatter_reduce gather_backward scatter.reduce scatter.reduce_out scatter_.reduce"
            )
        },
        "scatter": {"last_wins": True},
    },
    samples=(
        own("gather", "beyond_the_end", T((4, 3)), 0, _BEYOND, raises=True),
        own("scatter_.src", "beyond_the_end", T((4, 3)), 0, _BEYOND, T((2, 3)), raises=True),
        own("scatter_add_", "beyond_the_end", T((4, 3)), 0, _BEYOND, T((2, 3)), raises=True),
    ),
)
