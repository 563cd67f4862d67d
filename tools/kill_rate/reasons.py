"""Why a fault survives the suite."""

from __future__ import annotations

_LATE = "cells wait for each call; `conformance hazard` finds it"

REASONS: dict[str, str] = {
    "alignment_ignored": "no op asks for an alignment: npuMallocAligned is the driver's users', whose tests find it",
    "stage_not_taken": _LATE,
    "copy_to_host_not_awaited": _LATE,
    "scalar_to_host_not_awaited": _LATE,
    "pinned_copy_not_awaited": _LATE,
    "freed_at_once": _LATE,
    "recorded_streams_forgotten": _LATE,
    "pinned_freed_at_once": _LATE,
    "wait_event_ignored": _LATE,
    "wait_event_of_other_device_ignored": _LATE,
    "event_keeps_first_recording": _LATE,
    "event_recorded_on_default_stream": _LATE,
    "event_reached_early": _LATE,
    "event_query_says_done": _LATE,
    "event_not_awaited": _LATE,
    "stream_query_says_done": _LATE,
    "stream_not_awaited": _LATE,
    "device_waits_for_default_stream": _LATE,
    "launch_arguments_overwritten": _LATE,
    "work_overtakes": _LATE,
    "peer_copy_overtakes_target": _LATE,
    "peer_copy_not_awaited": _LATE,
    "late_error_lost": "cells wait for each call; the tests of the driver find it",
    "late_error_repeated": "cells wait for each call; the tests of the driver find it",
}
