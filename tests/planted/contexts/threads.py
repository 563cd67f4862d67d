"""The finders of planted faults that show in another thread, in a forked process, or at the first use."""

FOUND_IN = {
    "thread_drops_first_launch": ("neg.out", "float32", "thread", "value"),
    "thread_keeps_block": ("cumsum.out", "float32", "thread", "leak"),
}

FOUND_ELSEWHERE = {
    "fork_of_forked_not_noticed": "backend/tests/test_fault_demonstrations.py",
}
