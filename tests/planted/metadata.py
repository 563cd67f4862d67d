"""The finders of planted faults that show in the dtype, shape, strides or storage of a result."""

FOUND_IN = {
    "fallback_output_dtype_wrong": ("cholesky", "float64", "contiguous", "dtype"),
    "output_alias_lost": ("view", "float32", "contiguous", "aliasing"),
    "view_offset_dropped": ("as_strided", "float32", "contiguous", "offset"),
    "keepdim_stride_wrong": ("mean.out", "float32", "contiguous", "stride"),
    "flip_returns_contiguous": ("flip", "float32", "transposed", "stride"),
    "where_result_contiguous": ("where.self", "float32", "transposed", "stride"),
    "roll_of_whole_turns_aliases": ("roll", "float32", "contiguous", "aliasing"),
    "dropout_returns_its_input": ("native_dropout", "float32", "contiguous", "aliasing"),
    "repeat_interleave_gives_int64": ("repeat_interleave.Tensor", "int32", "contiguous", "dtype"),
    "linspace_out_takes_new_memory": ("linspace.out", "float32", "step2", "stride"),
    "layer_norm_mixed_statistics_dtype": ("native_layer_norm", "bfloat16", "variants", "dtype"),
    "channels_last_3d_made_contiguous": ("empty.memory_format", "float32", "variants", "stride"),
    "nonzero_row_major": ("nonzero", "float32", "values", "stride"),
    "nonzero_of_number_has_column": ("nonzero", "float32", "zero_dim", "shape"),
    "fallback_result_channels_last_lost": ("slow_conv_transpose2d", "float32", "channels_last", "stride"),
    "truth_of_bytes_over_dims_is_bool": ("any.dims", "uint8", "contiguous", "dtype"),
    "resize_to_same_size_restrides": ("resize_", "float32", "transposed", "stride"),
    "is_set_to_ignores_offset": ("is_set_to", "float32", "aliased", "value"),
    "where_of_two_numbers_in_default_dtype": ("where.self", "int64", "contiguous", "dtype"),
    "unique_inverse_is_flat": ("_unique2", "float32", "contiguous", "shape"),
    "trace_keeps_integer_dtype": ("trace", "int32", "contiguous", "dtype"),
    "resize_to_same_size_ignores_format": ("resize_", "float32", "variants_strided", "stride"),
    "cat_of_channels_last_is_contiguous": ("cat.out", "float32", "channels_last", "stride"),
    "nonzero_in_worst_case_block": ("nonzero", "float32", "sizes", "storage"),
    "masked_select_of_nothing_on_host": ("masked_select", "float32", "zero_size", "device"),
}

FOUND_ELSEWHERE: dict[str, str] = {}
