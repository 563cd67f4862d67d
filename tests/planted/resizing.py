"""What finds the planted faults that show in a storage that changes its size."""

FOUND_IN = {
    "deterministic_resize_fills_kept": ("resize_", "float32", "deterministic", "value"),
}

FOUND_ELSEWHERE = {
    "fallback_result_not_resizable": "the scenario storages:results_grow",
}
