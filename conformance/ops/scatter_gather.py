"""Scatter and gather along a dimension."""

from __future__ import annotations

from conformance.ops.family import EXACT, ROUNDED, Family, words

FAMILY = Family(
    "scatter_gather",
    words("gather gather_backward _gather_sparse_backward scatter scatter_add scatter_reduce"),
    {"tolerance": EXACT},
    but={
        name: {"tolerance": ROUNDED}
        for name in words("scatter_add scatter_reduce gather_backward scatter.reduce scatter_.reduce")
    },
)
