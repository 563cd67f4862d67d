"""The finders of planted faults that show in a mode of torch, or in state besides memory that a call changes."""

FOUND_IN = {
    "unfold_sets_version_counter": ("unfold", "float32", "inference_mode", "error_parity"),
    "embedding_asks_version": ("embedding", "float32", "inference_mode", "error_parity"),
    "deterministic_empty_not_filled": ("empty_like", "float32", "deterministic", "uninitialized"),
    "deterministic_scatter_add_of_largest": ("scatter_add.out", "float32", "deterministic", "value"),
    "deterministic_index_add_ignores_alpha": ("index_add.out", "float32", "deterministic", "value"),
    "integers_computed_in_float32": ("exp", "int64", "default_dtype", "value"),
    "deterministic_warning_raised": ("cumsum.out", "float32", "deterministic", "context"),
    "autocast_norms_lower": ("group_norm", "float32", "autocast", "dtype"),
    "autocast_promotes_to_lower": ("addcmul", "float32", "autocast", "dtype"),
    "autocast_lowers_double": ("group_norm", "float64", "autocast", "dtype"),
    "celu_records_without_grad_mode": ("celu", "float32", "no_grad", "context"),
    "fill_refuses_leaf": ("fill_.Scalar", "float32", "no_grad", "error_parity"),
    "deterministic_index_put_to_copy": ("_index_put_impl_", "float32", "deterministic", "value"),
    "autocast_dtype_of_first_use": ("prelu", "bfloat16", "autocast", "dtype"),
    "autocast_overrides_dtype": ("log_softmax.int", "bfloat16", "autocast", "dtype"),
    "autocast_lowers_float32_alone": ("prelu", "bfloat16", "autocast", "dtype"),
    "trunc_leaves_grad_mode_off": ("trunc", "float32", "contiguous", "state"),
    "silu_leaves_subnormals_flushed": ("silu", "float32", "contiguous", "state"),
    "uniform_advances_host_generator": ("uniform_", "float32", "contiguous", "state"),
    "sort_advances_generator": ("sort.values_stable", "float32", "contiguous", "state"),
    "fallback_leaves_deterministic": ("erfinv", "float32", "contiguous", "state"),
    "autocast_casts_results_back": ("group_norm", "bfloat16", "autocast", "dtype"),
    "autocast_casts_bool_masks": ("scaled_dot_product_attention", "float32", "autocast", "value"),
    "autocast_promotes_first_two": ("addcmul", "bfloat16", "autocast", "dtype"),
}

FOUND_ELSEWHERE = {
    "autocast_leaves_lists": "test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out",
    "autocast_forgets_baddbmm": "test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out",
}
