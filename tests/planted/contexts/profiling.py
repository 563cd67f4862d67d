"""The finders of planted faults that show in the records of a profiler."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE = {
    "profiler_drops_first_of_later_sessions": "the scenario profiling:kernels_of_many_ops, behind another program",
}
