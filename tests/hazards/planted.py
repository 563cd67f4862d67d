"""The planted faults of the reference NPU that break the order or the lifetime of late work."""

# fault: a hazard that finds it
FOUND_BY = {
    "stage_not_taken": "pageable_source_reused",
    "copy_to_host_not_awaited": "cpu_reads_queued_result",
    "scalar_to_host_not_awaited": "item_reads_queued_value",
    "pinned_copy_not_awaited": "pinned_target_read_after_blocking_copy",
    "freed_at_once": "freed_tensor_taken_by_another_stream",
    "recorded_streams_forgotten": "freed_tensor_of_a_recorded_stream",
    "current_stream_not_recorded": "freed_tensor_of_the_recorded_current_stream",
    "pinned_freed_at_once": "pinned_source_freed",
    "wait_event_ignored": "read_after_wait_event",
    "wait_event_of_other_device_ignored": "wait_for_event_of_another_device",
    "event_keeps_first_recording": "event_recorded_again",
    "event_recorded_on_default_stream": "read_after_wait_event",
    "event_reached_early": "read_after_wait_event",
    "event_query_says_done": "read_after_event_query",
    "event_not_awaited": "read_after_event_synchronize",
    "stream_query_says_done": "read_after_stream_query",
    "stream_not_awaited": "read_after_stream_synchronize",
    "device_waits_for_default_stream": "read_after_device_synchronize",
    "launch_arguments_overwritten": "launches_keep_their_arguments",
    "work_overtakes": "kernels_run_in_order",
    "async_copies_on_default_stream": "pinned_target_read_after_stream",
    "peer_copy_overtakes_target": "copy_between_devices_after_queued_read",
    "peer_copy_not_awaited": "read_after_copy_between_devices",
    "staged_peer_copy_not_awaited": "read_after_copies_of_each_form_between_devices",
    "staged_peer_copy_on_own_stream": "sources_of_each_form_written_after_copy_between_devices",
    "staged_peer_copy_overtakes_target": "copies_of_each_form_between_devices_after_queued_read",
    "staged_upload_reads_late": "pageable_sources_of_each_form_reused",
}
# Further hazards that find a fault: copies of several sizes, and in staged forms; one tensor on two streams.
ALSO_FOUND_BY = (
    ("stage_not_taken", "pageable_sources_of_each_size_reused"),
    ("copy_to_host_not_awaited", "cpu_reads_queued_results_of_each_size"),
    ("copy_to_host_not_awaited", "queued_results_copied_to_the_host_in_each_form"),
    ("staged_pinned_upload_not_awaited", "pinned_sources_of_each_form_reused_after_blocking_copy"),
    ("staged_download_not_awaited", "pinned_targets_of_each_form_read_after_event"),
    ("freed_at_once", "sources_of_each_form_freed_after_copy_between_devices"),
    ("freed_after_first_stream", "freed_tensor_of_two_recorded_streams"),
    ("recorded_streams_forgotten", "storage_grown_while_a_recorded_stream_reads_it"),
)
# Faults of recorded work, in a process that records work. fault: a hazard that finds it
FOUND_WHEN_RECORDED = {
    "partial_run_donates": "saving_one_of_several_queued_tensors",
    "partial_run_keeps_first_argument": "saving_a_tensor_that_a_queued_kernel_reads_twice",
    "partial_run_keeps_first_bytes": "saving_twice",
    "partial_run_forgets_inputs": "saving_a_result_of_queued_results",
    "partial_run_misses_views": "saving_the_base_of_a_written_view",
    "partial_run_drops_rest": "copying_one_of_several_queued_tensors",
    "donated_memory_stays_readable": "donated_tensor_read_again",
}
# No hazard finds these: no public call of torch makes a kernel raise on every backend.
FOUND_BY_THE_DRIVER_S_TESTS = ("late_error_lost", "late_error_repeated")
