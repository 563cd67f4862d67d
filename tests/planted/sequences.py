"""The finders of planted faults that show in a call after another one, or in some of many calls."""

FOUND_IN = {
    "hypot_gradient_spoils_saved": ("hypot", "float32", "backward", "value"),
    "clamp_bounds_kept_to_six_decimals": ("hardtanh", "float32", "sequence", "value"),
    "norm_of_all_kept_by_shape": ("linalg_vector_norm", "float32", "variants", "value"),
}

FOUND_ELSEWHERE = {
    "crash_after_sort": "test_a_death_after_another_op_names_it",
}
