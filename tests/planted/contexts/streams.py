"""What finds the planted faults that show on another stream, or in what streams and events tell."""

FOUND_IN = {
    "second_device_sums_on_default_stream": ("mean.out", "float32", "second_stream", "value"),
    "cat_on_default_stream": ("cat.out", "float32", "stream", "value"),
    "fallback_reads_default_stream": ("erfinv", "float32", "stream", "value"),
    "triangle_leaves_stream_current": ("triu", "float32", "contiguous", "state"),
}

FOUND_ELSEWHERE = {
    "events_in_seconds": "the scenario devices:times_of_events",
    "stream_block_keeps_other_device": "the scenario devices:current_streams",
    "stream_block_left_by_error": "the scenario devices:current_streams",
    "stream_made_on_current_device": "the scenario device_names:second_device_by_each_name",
    "stream_with_priority_is_default": "the scenario module_streams:streams_and_events_of_the_module",
    "new_streams_are_one": "the scenario devices:streams_and_events",
    "default_stream_of_other_device_is_current": "the scenario not_current:a_device_that_is_not_current",
    "default_stream_has_two_ids": "the scenario stream_handles:streams_as_objects",
    "stream_block_ends_on_default": "the scenario blocks:nested",
    "stream_block_keeps_own_device": "the scenario walks:devices_and_streams",
    "event_record_leaves_stream_current": "the scenario walks:devices_and_streams",
    "stream_past_pool_is_default": "the scenario walks:devices_and_streams",
    "event_times_in_whole_milliseconds": "the scenario devices:times_of_events",
    "stream_block_in_itself_stays": "the scenario walks:devices_and_streams",
    "event_times_leave_out_idle_time": "the scenario devices:times_of_events",
    "event_done_until_awaited": "the scenario devices:streams_and_events",
    "default_stream_without_device_is_first": "the scenario queries:without_a_device",
    "event_time_backwards_is_unsigned": "the scenario devices:times_of_events",
}
