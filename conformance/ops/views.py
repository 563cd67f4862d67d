"""Views: other metadata over the same memory, and copies of views."""

from __future__ import annotations

from conformance.ops.family import EXACT, Dtype, Family, T, own, words

FAMILY = Family(
    "views",
    words(
        "adjoint alias alias_copy as_strided as_strided_copy atleast_1d atleast_2d atleast_3d "
        "broadcast_tensors broadcast_to chunk conj _conj _conj_copy detach detach_copy diag diag_embed "
        "diagflat diagonal diagonal_copy dsplit expand expand_as expand_copy flatten flatten_dense_tensors "
        "flip fliplr flipud _fw_primal _fw_primal_copy hsplit linalg_diagonal mH mT matrix_H meshgrid "
        "moveaxis movedim narrow _neg_view _neg_view_copy numpy_T permute permute_copy ravel repeat "
        "repeat_interleave reshape reshape_as _reshape_alias _reshape_alias_copy _reshape_copy roll rot90 "
        "select select_copy slice slice_copy slice_inverse split split_copy split_with_sizes "
        "split_with_sizes_copy squeeze squeeze_copy swapaxes swapdims t t_copy tensor_split tile transpose "
        "transpose_copy unbind unbind_copy unflatten unflatten_dense_tensors unfold unfold_copy unsafe_chunk "
        "unsafe_split unsafe_split_with_sizes _unsafe_view unsqueeze unsqueeze_copy view view_as "
        "view_as_complex view_as_complex_copy view_as_real view_as_real_copy view_copy vsplit channel_shuffle "
        "native_channel_shuffle pixel_shuffle pixel_unshuffle"
    ),
    {"tolerance": EXACT, "moves": True},
    but={
        **{
            name: {"may_alias": True}
            for name in words(
                "reshape reshape_as flatten ravel broadcast_tensors atleast_1d atleast_2d atleast_3d tile unflatten "
                "tensor_split conj meshgrid"
            )
        },
        # takes sizes and strides unchecked, and reads past the end of a storage that the layout makes shorter
        "_reshape_alias_copy": {"overruns": ("expanded", "overlapping", "zero_dim", "zero_size", "mixed")},
        # Bytes that are not valid bools may be copied unchanged, or as True.
        "view_copy.dtype": {"fixed": ("dtype",)},
        "tensor_split.tensor_indices_or_sections": {"host": ("tensor_indices_or_sections",)},
    },
    samples=(
        own("view.dtype", "as_bytes", T((3, 4)), Dtype("uint8"), bases="float32 int64 complex64"),
        own("view_copy.dtype", "as_bytes", T((3, 4)), Dtype("uint8"), bases="float32 int64 complex64"),
        own("squeeze_copy.dims", "two", T((1, 3, 1, 2)), (0, 2), bases="float32 int64"),
        own("unsafe_split_with_sizes", "one_and_two", T((3, 4)), (1, 2), bases="float32 int64"),
        own("_neg_view_copy", "matrix", T((3, 4))),
        own("_reshape_copy", "rows", T((3, 4)), (2, 6), bases="float32 int64"),
    ),
)
