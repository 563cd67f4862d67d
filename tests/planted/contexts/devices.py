"""The finders of planted faults that show on another device, in the current device, or after an error of a device."""

FOUND_IN = {
    "softmax_on_first_device": ("_softmax", "float32", "second_device", "context"),
    "fallback_leaves_device_current": ("erfinv.out", "float32", "second_device", "context"),
    "failed_allocation_counted": ("neg.out", "float32", "after_error", "leak"),
    "out_of_memory_sticks": ("neg.out", "float32", "after_error", "error_parity"),
    "failed_fallback_leaves_device": ("_histogramdd_bin_edges", "float32", "second_device", "error_parity"),
    "fallback_result_on_current_device": ("_histogramdd_bin_edges", "float32", "second_device", "device"),
}

FOUND_ELSEWHERE = {
    "compiled_result_on_current_device": "the scenario compiled_calls:on_the_device_of_its_arguments",
}
