"""What finds the planted faults that show in what a profiler records."""

FOUND_IN: dict[str, tuple[str, str, str, str]] = {}

FOUND_ELSEWHERE = {
    "profiler_tells_first_device": "the scenario profiling:devices_of_kernels",
    "profiler_keeps_first_1024": "the scenario profiling:kernels_of_many_ops",
    "profiler_records_first_session_alone": "the scenario profiling:kernels_of_ops",
    "profiler_drops_kernels_of_other_threads": "the scenario profiling:kernels_of_gradients",
    "profiler_times_in_milliseconds": "the scenario profiling:units_of_times",
    "profiler_drops_first_of_later_sessions": "the scenario profiling:kernels_of_many_ops, behind another program",
    "profiler_stop_leaves_last_device": "the scenario profiling:sessions_leave_the_device",
    "profiler_merges_streams": "the scenario profiling:streams_of_kernels",
}
