"""Pooling: averages and maxima over windows, and their backward."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Equivalence, Family, T, Tolerance, own, words

FAMILY = Family(
    "pooling",
    words("*avg_pool* *max_pool* max_unpool*"),
    {"tolerance": Tolerance(4.0, accumulation=Accumulation.REDUCED)},
    but={
        "*max_pool*": {"equivalence": ((1, Equivalence.INDEX_OF_EQUAL),)},
        "*max_pool*_backward": {"equivalence": ()},
        # Reads indices as if they were contiguous, past the end of a short storage, and writes at the positions they
        # name.
        "fractional_max_pool*_backward": {"overruns": ("expanded", "overlapping", "mixed")},
        "adaptive_max_pool3d_backward": {"overruns": ("expanded", "overlapping", "step2", "mixed")},
        "mkldnn_*": {"cannot": "takes tensors of the mkldnn layout"},
        "quantized_*": {"cannot": "takes quantized tensors"},
    },
    samples=(
        own("adaptive_avg_pool3d_backward.grad_input", "thirds", T((2, 3, 2, 2, 2)), T((2, 3, 4, 5, 6)),
            grad_input=T((2, 3, 4, 5, 6), "undefined")),
    ),
)  # fmt: skip
