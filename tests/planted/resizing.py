"""The finders of planted faults that show in a storage that changes its size."""

FOUND_IN = {
    "deterministic_resize_fills_kept": ("resize_", "float32", "deterministic", "value"),
}

FOUND_ELSEWHERE: dict[str, str] = {}
