"""Reductions over segments, and ragged batches given as values and offsets."""

from __future__ import annotations

from conformance.ops.family import EXACT, SUMMED, Family, T, own, words

_NESTED = {"cannot": "takes or makes a nested tensor"}
_OFFSETS = T((3,), (0, 2, 5), "int64")

FAMILY = Family(
    "segment",
    words(
        "segment_reduce _segment_reduce_backward _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward "
        "_nested_* nested_to_padded_tensor to_padded_tensor"
    ),
    {"tolerance": SUMMED},
    but={
        "_nested_*": _NESTED,
        "nested_to_padded_tensor": _NESTED,
        "to_padded_tensor": _NESTED,
        "_nested_compute_contiguous_strides_offsets": {
            "cannot": "", "tolerance": EXACT, "doubtful": ("expanded", "overlapping", "mixed")
        },
        "_nested_tensor_from_mask_left_aligned": {"cannot": "", "tolerance": EXACT},
        "_jagged_to_padded_dense_forward": {"tolerance": EXACT},
        "_padded_dense_to_jagged_forward": {"tolerance": EXACT},
    },
    samples=(
        own("_jagged_to_padded_dense_forward", "rows", T((5, 3)), (_OFFSETS,), (4,), 0.5),
        own("_padded_dense_to_jagged_forward", "rows", T((2, 4, 3)), (_OFFSETS,), 5),
        own("_nested_compute_contiguous_strides_offsets", "two", T((2, 2), (2, 3, 4, 3), "int64"), bases="int64"),
        own("_nested_tensor_from_mask_left_aligned", "rows", T((2, 4, 3)),
            T((2, 4), (1, 1, 0, 0, 1, 1, 1, 0), "bool")),
    ),
)  # fmt: skip
