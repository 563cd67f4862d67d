"""What finds the planted faults that show where a call has to raise."""

FOUND_IN = {
    "wrong_error_type": ("cholesky", "float32", "expanded", "error_parity"),
    "bounds_not_checked": ("index_select", "float32", "contiguous", "error_parity"),
    "copy_overlap_forward": ("copy_", "float32", "expanded", "error_parity"),
    "error_not_raised": ("floor_divide", "int64", "contiguous", "error_parity"),
    "kthvalue_resizes_before_checks": ("kthvalue.values", "float32", "zero_size", "error_parity"),
    "extreme_of_nothing_is_zero": ("max", "float32", "zero_size", "error_parity"),
    "masked_scatter_repeats_short_source": ("masked_scatter", "float32", "expanded", "error_parity"),
    "take_accepts_int32": ("take", "float32", "variants", "error_parity"),
    "repeat_interleave_skips_negative": ("repeat_interleave.Tensor", "int64", "values", "error_parity"),
    "poisson_of_negative_rate": ("poisson", "float32", "values", "error_parity"),
    "nll_loss_bad_target_ignored": ("nll_loss_forward.output", "float32", "zero_size", "error_parity"),
    "masked_fill_takes_bytes": ("masked_fill_.Scalar", "float32", "variants", "error_parity"),
    "gather_counts_back": ("gather", "float32", "values", "error_parity"),
    "index_add_counts_back_in_matrix": ("index_add", "float32", "values", "error_parity"),
    "index_fill_few_not_checked": ("index_fill_.int_Scalar", "float32", "values", "error_parity"),
    "addr_float_alpha_of_integers_accepted": ("addr", "int64", "variants", "error_parity"),
    "layer_norm_bias_shape_by_numel": ("native_layer_norm", "float32", "variants", "error_parity"),
    "fill_from_own_element_refused": ("fill_.Tensor", "float32", "aliased", "error_parity"),
    "repeat_interleave_trusts_output_size": ("repeat_interleave.Tensor", "float32", "expanded", "error_parity"),
    "index_put_adds_overlapping_values": ("index_put_", "float32", "aliased", "error_parity"),
    "bernoulli_broadcast_chances_unchecked": ("bernoulli.Tensor_out", "float32", "values", "error_parity"),
    "flip_of_dim_named_twice_accepted": ("flip", "float32", "variants", "error_parity"),
    "as_strided_past_end_accepted": ("as_strided", "float32", "expanded", "error_parity"),
    "view_of_strided_copies": ("view", "float32", "sizes_gap", "error_parity"),
    "singular_inverse_not_refused": ("linalg_inv_ex.inverse", "float32", "values", "value"),
    "view_as_complex_of_odd_offset_accepted": ("view_as_complex", "float32", "offset1", "error_parity"),
    "out_resized_before_dtype_check": ("bmm.out", "float32", "variants", "shape"),
    "addbmm_scales_before_checks": ("addbmm_", "float32", "variants", "mutation"),
}

FOUND_ELSEWHERE: dict[str, str] = {}
