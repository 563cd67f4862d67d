"""The finders of planted faults that show in calls with ordinary arguments."""

FOUND_IN = {
    "fallback_not_copied_back": ("erfinv.out", "float32", "contiguous", "value"),
    "fallback_writes_back_first_alone": ("_amp_update_scale_", "float32", "contiguous", "value"),
    "eigenvectors_not_normalized": ("_linalg_eigh", "float32", "contiguous", "value"),
    "svd_signs_of_left_side_alone": ("_linalg_svd", "float32", "contiguous", "value"),
    "scatter_writes_wrong_dim": ("scatter.src_out", "float32", "contiguous", "value"),
    "cat_drops_last": ("cat.out", "float32", "contiguous", "value"),
    "triu_off_by_one": ("triu.out", "float32", "contiguous", "value"),
    "index_select_reads_past_end": ("index_select", "float32", "contiguous", "value"),
    "arange_float_end_included": ("arange.start_out", "float32", "contiguous", "shape"),
    "dropout_not_scaled": ("native_dropout", "float32", "contiguous", "distribution"),
    "dropout_mask_drawn_again": ("native_dropout", "float32", "contiguous", "distribution"),
    "nonzero_transposed": ("nonzero.out", "bfloat16", "contiguous", "value"),
    "tail_element_skipped": ("add.out", "float32", "contiguous", "value"),
    "mean_integer_rounding": ("mean.out", "float32", "contiguous", "value"),
    "layer_norm_eps_outside_sqrt": ("native_layer_norm", "float32", "contiguous", "value"),
    "topk_wrong_order": ("topk.values", "float32", "contiguous", "value"),
    "batch_norm_running_variance_biased": ("_native_batch_norm_legit", "float32", "contiguous", "value"),
}

FOUND_ELSEWHERE: dict[str, str] = {}
