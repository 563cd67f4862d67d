"""What finds the planted faults that show in another thread, in a forked process, or at the first use."""

FOUND_IN = {
    "thread_drops_first_launch": ("neg.out", "float32", "thread", "value"),
    "thread_keeps_block": ("cumsum.out", "float32", "thread", "leak"),
}

FOUND_ELSEWHERE = {
    "current_stream_of_all_threads": "the scenario devices:current_streams",
    "generators_of_each_thread": "the scenario generators:threads_share_the_default_generator",
    "current_device_of_all_threads": "the scenario devices:counts_and_current_device",
    "rng_state_of_own_thread": "the scenario queries:asking_elsewhere",
    "ended_thread_resets_main_device": "the scenario walks:devices_and_streams",
    "thread_starts_on_last_device": "the scenario devices:counts_and_current_device",
    "seed_skipped_in_any_fork": "the scenario generators:manual_seed_reaches_the_device",
    "first_use_not_awaited": "the scenario first_uses:first_uses_at_once",
    "draws_of_threads_unlocked": "the scenario long_draws:threads_draw_apart",
    "thread_inherits_streams_of_ended": "the scenario devices:current_streams",
    "fork_of_forked_not_noticed": "backend/tests/test_fault_demonstrations.py",
    "gemm_workspace_of_all_calls": "the scenario at_once:calls_of_threads",
    "plan_published_before_it_is_filled": "the scenario at_once:calls_of_threads",
    "last_plan_kept_without_lock": "the scenario at_once:calls_of_threads",
}
