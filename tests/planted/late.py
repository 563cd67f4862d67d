"""The finders of planted faults that show in the order of work on streams, or in the lifetime of its memory."""

FOUND_IN = {
    "kernel_raises": ("masked_fill_.Scalar", "float32", "contiguous", "error_parity"),
}

FOUND_ELSEWHERE = {
    "error_told_by_next_launch": "tests/running/test_late_errors.py",
    "held_memory_is_out_of_memory": "the late lane, with little memory",
    "fallback_results_on_default_stream": "backend/tests/test_fault_demonstrations.py",
}
