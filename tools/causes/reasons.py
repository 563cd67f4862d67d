"""Why the first cause of a fault is not the kernel in which the fault lies, or why no cell fails."""

from __future__ import annotations

_NO_SAMPLE = "no sample of the cells that were tried shows it"
_DTYPE = "the smoke tier has no cell in a dtype that shows it"
_NOT_HERE = "no code of this lane asks for it"
_LATE = "it has no effect in this lane, where work is done when a call returns"

REASONS: dict[str, str] = {
    "alignment_ignored": _NOT_HERE,
    "pool_hands_out_twice": _NOT_HERE,
    "bf16_accumulates_in_bf16": _DTYPE,
    "second_device_lands_on_first": "the bring-up gate finds it; cells use the first device alone",
    "table_unlocked": "a cell calls from one thread",
    "crash_in_some_processes": "a process dies or lives by its id, and the one of this trial lived",
    "negative_index_not_wrapped": _NO_SAMPLE,
    "bounds_not_checked": _NO_SAMPLE,
    "dropout_not_scaled": _NO_SAMPLE,
    "masked_fill_writes_gaps": _NO_SAMPLE,
    "nan_lost_in_maximum": _NO_SAMPLE,
    "nan_lost_in_amax": _NO_SAMPLE,
    "negative_zero_lost": _NO_SAMPLE,
    "error_not_raised": _NO_SAMPLE,
    "any_counts_bool_two": "no cell stores a bool as another byte than 0 and 1; a scenario does",
    "sort_unstable": _NO_SAMPLE,
    "seed_ignored": "it lies in the generator, outside of all operators: each random operator stands for itself",
    "conj_bit_ignored": (
        "the cells of copies have no complex dtype in the smoke tier and pass; the failing composites have several "
        "operators in common, and the last of them is named"
    ),
    "neg_bit_ignored": "only cells of one composite fail, which copies; the cells of copies have no neg bit and pass",
    "cumsum_wrong_dtype": "only one cell fails, of a composite that calls cumprod, whose own cells pass",
    "matmul_beta_zero_keeps_nan": "only cells of one composite fail, which calls addmv, whose own cells pass",
    "wrong_promotion": (
        "the cells of native kernels pass; the failing composites have several operators in common, and one that most "
        "of them call is named"
    ),
    "copy_expanded_source_as_dense": (
        "fill_.Tensor, which copies an expanded value, fails in most cells, and the cells of copy_ "
        "that were tried pass; the layout expanded is not among its four"
    ),
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
    "late_error_lost": _LATE,
    "late_error_repeated": _LATE,
}
