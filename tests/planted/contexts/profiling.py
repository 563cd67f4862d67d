"""What finds the planted faults that show in what a profiler records."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE = {
    "profiler_drops_first_of_later_sessions": "the scenario profiling:kernels_of_many_ops, behind another program",
}
