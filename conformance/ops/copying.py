"""Copies, conversions and clones, on which every twin and every other op depends."""

from __future__ import annotations

from conformance.ops.family import EXACT, Dtype, Family, T, own, words

ALL_BASES = "float32 int64 bool complex64"

FAMILY = Family(
    "copying",
    words(
            "_autocast_to_full_precision _autocast_to_reduced_precision _cast_* clone contiguous copy _copy_from "
            "_copy_from_and_resize _local_scalar_dense item _lazy_clone lift lift_fresh lift_fresh_copy "
            "_pin_memory pin_memory resize resize_as _resize_output resolve_conj resolve_neg set set_data to "
            "_to_copy _to_cpu type_as chalf data is_set_to _reshape_from_tensor"
        ),
    {"tolerance": EXACT, "moves": True},
    but={
        # Backends register _copy_from.
        **{name: {"only_way": True} for name in words("copy_ _to_copy")},
        # The elements beyond the old end of a grown tensor are undefined.
        **{name: {"undefined": (0,)} for name in words("resize resize_as _resize_output")},
        **{
            name: {"may_alias": True}
            for name in words(
                "contiguous to _cast_* resolve_conj resolve_neg type_as _autocast_* lift lift_fresh chalf"
            )
        },
        "set_.source_Storage": {"cannot": "takes a storage, which a sample cannot hold"},
        "set_.source_Storage_storage_offset": {"cannot": "takes a storage, which a sample cannot hold"},
        "set.source_Storage": {"cannot": "takes a storage, which a sample cannot hold"},
        "set.source_Storage_storage_offset": {"cannot": "takes a storage, which a sample cannot hold"},
        "*pin_memory": {"cannot": "host memory of an accelerator, which the CPU build lacks"},
    },
    samples=(
        own("copy_", "row_into_matrix", T((3, 4)), T((4,)), bases=ALL_BASES),
        own("copy_", "scalar_into_cube", T((2, 3, 4)), T(()), bases=ALL_BASES),
        own("copy_", "from_float", T((3, 4)), T((3, 4), "positive", "float32"), bases=ALL_BASES),
        own("copy_", "from_int", T((3, 4)), T((3, 4), "index:9", "int64"), bases=ALL_BASES),
        own("copy_", "from_bool", T((3, 4)), T((3, 4), "mask", "bool"), bases=ALL_BASES),
        own("copy_", "four_dimensions", T((2, 3, 4, 5)), T((2, 3, 4, 5)), bases=ALL_BASES),
        own("_to_copy", "to_float", T((2, 3, 4)), dtype=Dtype("float32"), bases=ALL_BASES),
        own("_to_copy", "to_double", T((2, 3, 4)), dtype=Dtype("float64"), bases="float32 int64 bool"),
        own("_to_copy", "to_half", T((2, 3, 4)), dtype=Dtype("float16"), bases="float32 int64 bool"),
        own("_to_copy", "to_bfloat16", T((2, 3, 4)), dtype=Dtype("bfloat16"), bases="float32 int64 bool"),
        own("_to_copy", "to_bool", T((2, 3, 4)), dtype=Dtype("bool"), bases=ALL_BASES),
        own("_to_copy", "to_long", T((2, 3, 4), "index:9"), dtype=Dtype("int64"), bases="float32 int64 bool"),
        own("_to_copy", "to_complex", T((2, 3, 4)), dtype=Dtype("complex64"), bases=ALL_BASES),
        own("clone", "four_dimensions", T((2, 3, 4, 5)), bases=ALL_BASES),
        own("set_.source_Tensor", "other", T((3, 4)), T((2, 5)), bases=ALL_BASES),
        own("set_", "nothing", T((3, 4)), bases=ALL_BASES),
        own("is_set_to", "itself_not", T((3, 4)), T((3, 4)), bases=ALL_BASES),
        own("resize_", "smaller", T((3, 4)), (2, 5), bases=ALL_BASES),
    ),
)  # fmt: skip
