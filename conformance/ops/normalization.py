"""Normalization over batches, layers, groups and weights, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Iterator

from conformance.ops.family import Accumulation, Family, Own, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"}


def _groups(label: str, batch: int, channels: int, sizes: tuple[int, ...], groups: int) -> Iterator[Own]:
    """Yield a forward and a backward call of a group norm."""
    x, of_groups, of_channels = T((batch, channels, *sizes)), T((batch, groups)), T((channels,))
    counts = (batch, channels, math.prod(sizes), groups)
    yield own("native_group_norm", label, x, of_channels, of_channels, *counts, 1e-5)
    yield own("native_group_norm_backward", label, x, x, of_groups, of_groups, of_channels, *counts, (True,) * 3)


# The recorded numbers of images, channels and groups are equal by chance, or multiples: none can change alone.
_GROUPS = (
    *_groups("three_groups", 2, 6, (5, 7), 3),
    *_groups("vectors", 5, 33, (11,), 11),
    *_groups("each_channel", 3, 7, (4, 3), 7),
    *_groups("all_channels", 3, 10, (3, 5), 1),
    *_groups("whole_vectors", 3, 64, (9, 8), 4),
    *_groups("many_channels", 2, 516, (5,), 12),
    *_groups("many_images", 259, 12, (3, 2), 4),
    *_groups("long_rows", 2, 6, (1031,), 2),
    *_groups("volumes", 2, 20, (3, 4, 5), 5),
)

FAMILY = Family(
    "normalization",
    words(
        "*batch_norm* group_norm instance_norm layer_norm native_group_norm* native_layer_norm* "
        "renorm rms_norm _fused_rms_norm _fused_rms_norm_backward _weight_norm*"
    ),
    {"tolerance": Tolerance(8.0, 4.0, Accumulation.REDUCED)},
    but={
        "cudnn_*": _OTHER_DEVICE,
        "miopen_*": _OTHER_DEVICE,
        "quantized_*": {"cannot": "takes quantized tensors"},
        # Assumes that its arguments are dense, and writes the norms with strides that it copies from one of them.
        "_weight_norm_interface": {
            "overruns": ("expanded", "overlapping", "mixed"), "doubtful": ("step2", "outer_gap")
        },
        "native_group_norm": {"doubtful": ("expanded",)},
        # Results of the forward pass: for no input is the mean infinite, or the inverse of the deviation.
        "native_layer_norm_backward": {"doubtful": ("expanded",), "fixed": ("mean", "rstd")},
        "native_group_norm_backward": {"doubtful": ("expanded", "overlapping", "mixed")},
    },
    samples=(
        own("_weight_norm_interface", "rows", T((4, 3)), T((4, 1)), 0),
        own("_weight_norm_interface", "columns", T((4, 3)), T((1, 3)), 1),
        own("_weight_norm_interface_backward", "rows", T((4, 3)), T((4, 3)), T((4, 1)), T((4, 1), "positive"), 0),
        own("native_group_norm_backward", "two_groups", T((2, 4, 3)), T((2, 4, 3)), T((2, 2)), T((2, 2), "positive"),
            T((4,)), 2, 4, 3, 2, (True, True, True)),
        own("batch_norm_update_stats", "channels", T((2, 3, 4)), T((3,)), T((3,), "positive"), 0.1),
    ),
    configurations=_GROUPS,
)  # fmt: skip
