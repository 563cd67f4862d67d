"""Dropout: the kept elements are random, but their share and their scale are not."""

from __future__ import annotations

from conformance.ops.family import ROUNDED, Family, Random, T, own, words

FAMILY = Family(
    "dropout",
    words(
        "alpha_dropout dropout feature_alpha_dropout feature_dropout _fused_dropout _masked_scale "
        "native_dropout native_dropout_backward"
    ),
    {"tolerance": ROUNDED, "random": Random("dropout")},
    but={
        "native_dropout": {"random": Random("dropout", (0, 1))},
        "_fused_dropout": {"cannot": "a kernel of CUDA alone"},
        "_masked_scale": {"cannot": "a kernel of CUDA alone", "random": None},
        "native_dropout_backward": {"random": None},
    },
    samples=(
        own("native_dropout", "half", T((8, 40)), 0.5, True),
        own("native_dropout", "not_training", T((3, 4)), 0.5, False),
        # With a mean of zero, a wrong scale hardly shows.
        own("native_dropout", "half_of_ones", T((8, 40), "ones"), 0.5, True),
    ),
)
