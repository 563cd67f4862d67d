"""The planted faults of the reference NPU that programs find on a device with late or recorded work, or compiled."""

# fault: a scenario that finds it where work is late
FOUND_WHEN_LATE = {
    "freed_at_once": "streams:memory_in_use",
    "freed_after_first_stream": "streams:memory_in_use",
    "pinned_view_use_forgotten": "streams:memory_in_use",
    "recorded_streams_forgotten": "streams:memory_in_use",
    "pinned_freed_at_once": "streams:memory_in_use",
    "wait_event_ignored": "streams:events_in_order",
    "event_blocks_current_stream": "streams:events_in_order",
    "event_reached_early": "streams:events_in_order",
    "event_recorded_on_default_stream": "streams:events_in_order",
    "event_not_awaited": "streams:events_in_order",
    "event_destroyed_is_not_awaited": "streams:events_in_order",
    "stream_not_awaited": "streams:events_in_order",
    "device_waits_for_default_stream": "streams:copies_that_arrive",
    "current_device_synchronized": "streams:copies_that_arrive",
    "staged_download_not_awaited": "streams:copies_that_arrive",
    "event_waited_for_once": "streams:events_in_order",
    "record_stream_of_view_ignored": "streams:memory_in_use",
    "staged_pinned_upload_not_awaited": "streams:copies_that_arrive",
    "gradients_on_default_stream": "streams:gradients_of_streams",
    "group_reads_default_stream": "distributed:collectives_on_a_stream",
    "event_time_of_recording": "devices:times_of_events",
    "work_overtakes": "streams:calls_without_a_wait",
    "event_query_says_done": "streams:events_in_order",
    "stream_query_says_done": "streams:events_in_order",
    "compiled_on_default_stream": "compiled_calls:on_a_stream",
    "compiled_host_tensors_not_kept": "compiled_calls:scalars_of_the_host",
    "full_queue_drops_work": "profiling:kernels_of_many_ops",
    "stream_query_of_device": "walks:devices_and_streams",
    "event_stays_on_first_stream": "streams:events_in_order",
    "second_wait_forgets_first": "streams:events_in_order",
    "recorded_stream_replaces_own": "transfers:between_devices",
    "storage_resized_on_default_stream": "walks:tensors_on_streams",
    "pinned_target_not_held": "streams:memory_in_use",
    "synchronize_holds_gil": "waits:threads_run_meanwhile",
    "item_on_default_stream": "walks:tensors_on_streams",
    "profiler_measures_default_stream": "profiling:units_of_times",
    "context_of_first_device_alone": "streams:gradients_of_streams",
    "scan_workspace_of_all_streams": "at_once:calls_on_two_streams",
}
# fault: a scenario that finds it where work is recorded
FOUND_WHEN_RECORDED = {
    "partial_run_passes_barriers": "devices:streams_and_events",
    "written_argument_counts_as_read": "streams:copies_that_arrive",
}
# As above, where the program dies or waits until it is ended, which takes minutes to tell. No test runs these; the
# kill-rate does, but for the second one, whose program is slow and finds it where work is late.
FOUND_AFTER_MINUTES = {
    "freed_after_current_stream": "streams:memory_in_use",
    "fork_not_noticed": "devices:forked_process",
    "query_starts_no_recorded_work": "streams:events_in_order",
}
