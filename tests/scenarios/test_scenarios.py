"""The scenarios: each passes on a correct device and fails on a wrong one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.explain import describe, repro
from conformance.judging import programs
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import Observation
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.scenarios import catalogue, decoder
from conformance.scenarios.model import SCENARIOS, NotOffered, Results, Scenario
from conformance.vocabulary import RUN, CaseId, CellId, Check, Status

# Of each fault in the state that programs keep, a scenario that finds it.
FINDS = {
    "seed_ignored": "generators:same_seed_same_draws",
    "seed_ignored_native": "generators:other_seed_other_draws",
    "sampling_leaves_generator": "generators:draws_advance_the_stream",
    "set_state_forgets_position": "generators:state_continues_the_stream",
    "get_state_aliases": "generators:state_is_a_copy",
    "second_device_shares_generator": "generators:devices_have_their_own",
    "sampling_from_first_device": "generators:devices_have_their_own",
    "generator_clone_shares_state": "generators:clones_go_on_alone",
    "rng_state_of_current_device": "generators:default_state_continues_the_stream",
    "storage_resized_on_current_device": "devices:statistics_add_up",
    "events_in_seconds": "devices:times_of_events",
    "peak_reset_to_zero": "devices:statistics_add_up",
    "stream_block_keeps_other_device": "devices:current_streams",
    "stream_block_left_by_error": "devices:current_streams",
    "current_stream_of_all_threads": "devices:current_streams",
    "checkpoint_state_not_kept": "training:checkpoints_with_dropout",
    "load_on_current_device": "serialization:loaded_elsewhere",
    "lstm_gradient_needs_hidden": "training:one_output_of_several",
    "lstm_cell_state_clipped": "training:recurrent_states",
    "chosen_seed_is_default": "generators:seed_is_kept",
    "resize_keeps_first_bytes": "storages:grown_tensor_keeps_elements",
    "resize_to_zero_ignored": "storages:emptied_and_filled_again",
    "resized_nbytes_rounded": "storages:grown_storage_keeps_bytes",
    "set_tensor_drops_offset": "storages:set_to_another_storage",
    "resize_forgets_offset": "storages:resized_views",
    "resize_shrinks_storage": "storages:shrunk_tensor_keeps_storage",
    "resize_growth_leaves_aliases": "storages:grown_tensor_keeps_elements",
    "set_to_storage_of_other_device_accepted": "storages:storages_of_other_devices",
    "deterministic_integers_filled_with_zero": "storages:new_elements_under_determinism",
    "fallback_results_not_inference": "storages:results_of_inference_mode",
    "autocast_off_in_inference_mode": "training:autocast_in_each_mode",
    "group_barrier_not_awaited": "groups:barriers_of_two_processes",
    "is_initialized_stays_false": "devices:questions_initialize_nothing",
    "out_of_memory_as_plain_error": "devices:out_of_memory",
    "devices_compared_by_type": "operands:operands_of_two_devices",
    "copy_ignores_strides": "decoder:generation",
    "any_counts_bool_two": "masks:odd_bools",
    "upload_drops_last_page": "transfers:to_the_device",
    "staged_download_repeats_chunk": "transfers:to_the_host",
    "non_blocking_source_as_dense": "transfers:without_blocking",
    "copy_size_rounded_down": "transfers:between_devices",
    "copy_dtype_reinterpreted": "transfers:with_conversion",
    "peer_copy_keeps_bytes": "transfers:between_devices",
    "peer_copy_drops_conj": "transfers:between_devices",
    "dense_transfer_ignores_order": "transfers:into_tensors_of_the_host",
    "number_upload_fills_gaps": "transfers:broadcast",
    "peer_copy_broadcast_of_first_row": "transfers:broadcast_between_devices",
    "fallback_written_kept_by_name": "forms:results_after_results",
    "gathered_in_reverse": "groups:collectives_of_two_processes",
    "received_tensor_dropped": "groups:collectives_of_two_processes",
    "seed_of_negative_by_magnitude": "generators:seed_is_kept",
    "generators_of_each_thread": "generators:threads_share_the_default_generator",
    "device_named_by_string_is_current": "device_names:second_device_by_each_name",
    "stream_made_on_current_device": "device_names:second_device_by_each_name",
    "device_of_host_by_index": "device_names:devices_of_another_kind",
    "emptied_storage_keeps_block": "devices:statistics_add_up",
    "peak_reset_of_current_device": "devices:statistics_add_up",
    "gru_hidden_bias_gradient_of_input": "training:one_output_of_several",
    "default_dtype_of_first_tensor": "defaults:default_dtype",
    "fallback_copies_each_view_anew": "flat_tensors:optimizer_steps",
    "converted_download_overwrites_source": "transfers:sources_of_conversions",
    "group_result_to_strided_lost": "groups:collectives_of_two_processes",
    "group_handle_keeps_tensors": "distributed:collectives_keep_no_memory",
    "group_result_written_by_each_wait": "groups:collectives_of_two_processes",
    "group_reduce_op_ignored": "groups:collectives_of_two_processes",
    "group_input_in_memory_order": "drawn_collectives:drawn_collectives",
    "group_completed_without_result": "drawn_collectives:drawn_collectives",
    "failed_allocation_not_told": "memory_numbers:numbers_of_the_device",
    "freed_bytes_lower_what_was_allocated": "memory_numbers:numbers_of_the_accelerator",
    "peak_of_blocks_not_reset": "memory_numbers:numbers_of_the_accelerator",
    "autocast_keeps_cast_of_weight": "training:autocast_of_written_weights",
    "autocast_detaches_lists": "training:gradients_through_autocast",
    "autocast_reuses_cast_of_no_grad": "training:autocast_behind_no_grad",
    "generator_state_of_wrong_size_ignored": "generators:states_that_are_none",
    "is_available_uses_device": "devices:questions_initialize_nothing",
    "profiler_times_in_milliseconds": "profiling:units_of_times",
    "set_rng_state_of_current_device": "device_names:second_device_by_each_name",
    "generator_made_on_current_device": "device_names:second_device_by_each_name",
    "stream_with_priority_is_default": "module_streams:streams_and_events_of_the_module",
    "import_draws_on_host": "importing:importing_changes_nothing_else",
    "new_streams_are_one": "devices:streams_and_events",
    "current_device_of_all_threads": "devices:counts_and_current_device",
    "freed_on_current_device": "transfers:between_devices",
    "generator_cloned_on_current_device": "not_current:a_device_that_is_not_current",
    "manual_seed_all_from_current_device": "not_current:a_device_that_is_not_current",
    "default_stream_of_other_device_is_current": "not_current:a_device_that_is_not_current",
    "resized_on_other_device_keeps_nothing": "not_current:a_device_that_is_not_current",
    "device_without_index_is_first": "not_current:device_without_an_index",
    "synchronized_device_stays_current": "not_current:current_device_is_left",
    "free_memory_below_peak": "devices:statistics_add_up",
    "large_pinned_memory_is_pageable": "loading:pinned_memory",
    "set_state_keeps_seed": "generators:seed_is_kept",
    "profiler_tells_first_device": "profiling:devices_of_kernels",
    "set_storage_keeps_offset": "storages:set_to_another_storage",
    "set_of_nothing_on_first_device": "storages:set_to_another_storage",
    "fallback_mixes_devices": "operands:operands_of_two_devices",
    "upload_to_double_through_float": "transfers:numbers_converted",
    "transposing_copy_skips_corner": "transfers:turned_within_the_device",
    "transfer_reshapes_equal_numel": "transfers:shapes_that_do_not_fit",
    "upload_to_overlapping_accepted": "transfers:targets_that_overlap",
    "download_ignores_target_offset": "transfers:into_tensors_of_the_host",
    "memory_info_of_current_device": "queries:both_modules_agree",
    "default_stream_has_two_ids": "stream_handles:streams_as_objects",
    "stream_block_ends_on_default": "blocks:nested",
    "host_generator_accepted": "generators:generator_of_the_host",
    "item_kept_by_version": "handles:read_after_each_write",
    "profiler_keeps_first_1024": "profiling:kernels_of_many_ops",
    "peak_noted_when_freed": "devices:statistics_add_up",
    "initial_seed_seeds": "queries:asking_changes_nothing",
    "memory_stats_resets_peak": "queries:asking_changes_nothing",
    "default_stream_without_device_is_first": "queries:without_a_device",
    "failed_allocation_raises_peak": "memory_numbers:numbers_of_the_device",
    "rng_state_of_own_thread": "queries:asking_elsewhere",
    "exchange_device_returns_new": "blocks:nested",
    "device_block_restores_where_made": "blocks:made_before_they_begin",
    "empty_cache_resets_peak": "walks:tensors_on_streams",
    "free_in_thread_not_counted": "walks:tensors_on_streams",
    "event_record_leaves_stream_current": "walks:devices_and_streams",
    "stream_block_keeps_own_device": "walks:devices_and_streams",
    "fallback_leaves_one_thread": "walks:first_calls_of_a_process",
    "error_message_of_first_failure": "walks:devices_and_streams",
    "load_takes_last_device": "device_names:a_device_that_is_not_there",
    "set_device_wraps_index": "device_names:a_device_that_is_not_there",
    "pinned_in_thread_is_pageable": "loading:pinned_memory",
    "profiler_records_first_session_alone": "profiling:kernels_of_ops",
    "set_rng_state_all_from_first": "seeding:seeds_of_the_module",
    "seed_all_of_current_device": "seeding:seeds_of_the_module",
    "seed_before_first_draw_lost": "walks:first_calls_of_a_process",
    "shrunk_storage_is_cleared": "storages:grown_storage_keeps_bytes",
    "bad_set_device_resets_current": "walks:devices_and_streams",
    "stream_past_pool_is_default": "walks:devices_and_streams",
    "ended_thread_resets_main_device": "walks:devices_and_streams",
    "profiler_drops_kernels_of_other_threads": "profiling:kernels_of_gradients",
    "pinned_memory_counts_on_device": "devices:statistics_add_up",
    "failed_growth_empties_storage": "walks:tensors_on_streams",
    "same_seed_after_set_state_ignored": "walks:generators_of_devices",
    "unpickled_generator_starts_anew": "walks:generators_of_devices",
    "download_to_strided_clears_gaps": "transfers:into_tensors_of_the_host",
    "load_leaves_device_current": "walks:tensors_on_streams",
    "sort_rows_past_grid": "millions:rows_in_order",
    "nonzero_counts_in_float": "millions:positions",
    "future_without_result": "parallel:data_parallel_step",
    "scattered_sum_of_own": "parallel:sharded_step",
    "coalesced_gather_of_first": "parallel:distributed_tensors",
    "fused_step_despite_overflow": "training:fused_optimizers",
    "event_times_in_whole_milliseconds": "devices:times_of_events",
    "thread_starts_on_last_device": "devices:counts_and_current_device",
    "set_device_of_negative_is_last": "devices:counts_and_current_device",
    "pinned_before_first_use_is_pageable": "loading:pinned_before_the_first_use",
    "given_generator_kept_by_device": "device_names:second_device_by_each_name",
    "accelerator_peak_is_current": "memory_numbers:numbers_of_the_accelerator",
    "group_broadcast_of_first": "groups:collectives_of_two_processes",
    "group_splits_ignored": "groups:collectives_of_two_processes",
    "memory_allocated_of_current_device": "device_names:second_device_by_each_name",
    "stream_block_in_itself_stays": "walks:devices_and_streams",
    "event_times_leave_out_idle_time": "devices:times_of_events",
    "event_done_until_awaited": "devices:streams_and_events",
    "later_seed_restarts_first": "generators:manual_seed_reaches_the_device",
    "freed_bytes_rounded_up": "walks:tensors_on_streams",
    "autocast_refuses_float16": "walks:modes_and_ops",
    "exit_with_memory_aborts": "endings:processes_end",
    "profiler_stop_leaves_last_device": "profiling:sessions_leave_the_device",
    "seed_told_in_32_bits": "generators:seed_is_kept",
    "save_forgets_device_index": "serialization:loaded_elsewhere",
    "peak_of_second_device_counts_all": "memory_numbers:numbers_of_the_device",
    "device_block_left_by_error": "walks:devices_and_streams",
    "seed_skipped_in_any_fork": "generators:manual_seed_reaches_the_device",
    "first_use_not_awaited": "first_uses:first_uses_at_once",
    "manual_seed_all_uses_device": "seeding:seeds_before_the_first_use",
    "load_leaves_empty_on_host": "serialization:saved_and_loaded",
    "fallback_result_not_resizable": "storages:results_grow",
    "pinned_upload_ignores_offset": "loading:views_of_pinned_memory",
    "uniform_of_halves_rounds_to_end": "long_draws:draws_stay_in_their_range",
    "draws_of_threads_unlocked": "long_draws:threads_draw_apart",
    "poisson_of_large_rate_is_normal": "long_draws:draws_stay_in_their_range",
    "profiler_merges_streams": "profiling:streams_of_kernels",
    "npu_method_stays_on_device": "named_methods:methods_named_after_the_device",
    "event_time_backwards_is_unsigned": "devices:times_of_events",
    "thread_inherits_streams_of_ended": "devices:current_streams",
    "scaler_growth_survives_overflow": "training:scaled_gradients",
    "group_root_counted_in_world": "subgroups:ranks_in_subgroups",
    "group_result_to_start_of_storage": "groups:collectives_of_two_processes",
    "gemm_workspace_of_all_calls": "at_once:calls_of_threads",
    "plan_published_before_it_is_filled": "at_once:calls_of_threads",
    "last_plan_kept_without_lock": "at_once:calls_of_threads",
    "import_needs_a_device": "hidden_devices:programs_without_a_device",
}

# As above, where the correct device refuses what the scenario needs.
FINDS_WHERE_REFUSED = {
    "shared_memory_is_a_copy": "sharing:shared_memory",
    "sent_tensor_arrives_empty": "sharing:sent_through_a_queue",
}


def planned(backend: str, tier: str = "full", **selection: Any) -> Plan:
    return Plan(backends.find(backend), Selection(tier=TIERS[tier], **selection), seed=20)


# Modules of programs that look at times, or in which threads, processes or late work have to meet: a busy machine may
# run one of them too late.
MEET = {
    "at_once", "devices", "drawn_collectives", "first_uses", "groups", "long_draws", "module_streams", "profiling",
    "streams", "threads", "waits", "walks",
}  # fmt: skip


def observe(plan: Plan, name: str, timeout: float = 150) -> Observation:
    runner = Runner(CellRunner(plan), timeout)
    try:
        return runner.observe(CellId.of_scenario(name))
    finally:
        runner.close()


def first_failing(plan: Plan, name: str, timeout: float = 150, *, late: bool = False) -> Observation:
    """Return the first of a few observations that fails; of one, where nothing is ``late``, meets or takes its time."""
    found = observe(plan, name, timeout)
    for _ in range(4 if late or name.partition(":")[0] in MEET else 0):
        if found.status.is_failure:
            break
        found = observe(plan, name, timeout)
    return found


def said(observation: Observation) -> str:
    return "\n".join(line for failure in observation.failures for line in describe.findings(failure))


@pytest.mark.parametrize("name", catalogue.names())
def test_the_cpu_under_its_own_name_equals_itself(name: str) -> None:
    found = observe(planned("torch:cpu"), name)
    assert (found.status, found.compared, found.reason) == (Status.PASS, 1, ""), said(found)


@pytest.fixture
def refnpu() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    yield testing
    testing.set_fault(None)


@pytest.mark.parametrize("fault", FINDS)
def test_a_fault_in_kept_state_is_found_by_a_scenario_that_is_clean_without_it(fault: str, refnpu: Any) -> None:
    plan = planned("refnpu")
    clean = observe(plan, FINDS[fault])
    assert clean.status is Status.PASS, said(clean)
    refnpu.set_fault(fault)
    found = first_failing(plan, FINDS[fault])
    assert found.status is Status.FAIL
    assert found.failures[0].mismatches


def test_a_fault_of_later_sessions_of_the_profiler_is_found_by_the_second_program_of_a_process(refnpu: Any) -> None:
    refnpu.set_fault("profiler_drops_first_of_later_sessions")
    runner = Runner(CellRunner(planned("refnpu")), timeout=600)
    try:
        found = [runner.observe(CellId.of_scenario("profiling:kernels_of_many_ops")) for _ in range(2)]
    finally:
        runner.close()
    assert [one.status for one in found] == [Status.PASS, Status.FAIL]


@pytest.mark.parametrize("fault", FINDS_WHERE_REFUSED)
def test_sharing_that_is_refused_is_no_failure_and_sharing_nothing_is_one(fault: str, refnpu: Any) -> None:
    plan = planned("refnpu")
    clean = observe(plan, FINDS_WHERE_REFUSED[fault])
    assert clean.status is Status.UNSUPPORTED, said(clean)
    assert "the npu has no memory that processes share" in clean.reason
    refnpu.set_fault(fault)
    found = observe(plan, FINDS_WHERE_REFUSED[fault])
    assert found.status is Status.FAIL
    assert found.failures[0].mismatches


@pytest.mark.parametrize(
    "fault",
    [
        "get_state_aliases",
        "rng_state_of_current_device",
        "resize_forgets_offset",
        "copy_ignores_strides",
        "gathered_in_reverse",
    ],
)
def test_the_script_of_a_scenario_needs_no_suite(fault: str, refnpu: Any, tmp_path: Path) -> None:
    plan = planned("refnpu")
    case = str(CaseId(CellId.of_scenario(FINDS[fault]), RUN))
    script = tmp_path / "script.py"
    script.write_text(repro.script_of_case(plan, case))
    assert "conformance" not in script.read_text()
    asleep, awake = (run_script(script, fault=name) for name in ("", fault))
    assert (asleep.returncode, asleep.stdout) == (0, "the device does as CPU does\n"), asleep.stderr
    assert awake.returncode == 1
    assert awake.stdout.startswith("DIFFERS: ")


@pytest.mark.usefixtures("refnpu")
def test_a_scenario_that_is_not_slow_runs_on_the_second_device_too() -> None:
    backend = planned("refnpu").backend
    assert programs.devices(catalogue.find("masks:masked_fill"), backend) == ["npu:0", "npu:1"]
    assert programs.devices(catalogue.find("training:layers"), backend) == ["npu:0"]


@pytest.mark.forked  # it sets the number of torch's threads
def test_a_difference_on_the_second_device_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(device: str) -> Results:
        return {"value": torch.tensor(float(device == "cpu:1"))}

    monkeypatch.setattr(programs, "devices", lambda *_: ["cpu", "cpu:1"])
    (found,) = programs.judge(Scenario("m:f", run), planned("torch:cpu").backend, lambda _: None).mismatches
    assert found.subject == "value on cpu:1"


@pytest.mark.forked
def test_a_scenario_that_is_not_slow_runs_in_another_thread_too() -> None:
    main, threads = threading.get_ident(), list[bool]()

    def run(device: str) -> Results:
        threads.append(threading.get_ident() == main)
        return {"value": torch.tensor(float(threads[-1])), "lost": torch.ones(1) if threads[-1] else NotOffered("it")}

    backend = planned("torch:cpu").backend
    assert not programs.judge(Scenario("m:f", run, slow=True), backend, lambda _: None).mismatches
    assert threads == [True, True]
    (found,) = programs.judge(Scenario("m:f", run), backend, lambda _: None).mismatches
    assert found.subject == "value in another thread"


@pytest.mark.forked
def test_what_is_offered_once_is_offered_again_in_another_thread() -> None:
    calls = list[str]()

    def run(device: str) -> Results:
        calls.append(device)
        return {"value": torch.ones(1), "lost": torch.ones(1) if len(calls) < 3 else NotOffered("it")}

    (found,) = programs.judge(Scenario("m:f", run), planned("torch:cpu").backend, lambda _: None).mismatches
    assert (found.check, found.subject) == (Check.ERROR_PARITY, "lost in another thread")


def run_script(script: Path, fault: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REFNPU_FAULT": fault}
    command = [sys.executable, str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=script.parent)


def test_the_likeliest_tokens_of_the_decoder_lie_far_apart() -> None:
    for name, logits in decoder.generation("cpu").items():
        if name.endswith("logits"):
            assert isinstance(logits, torch.Tensor)
            best, second = logits.topk(2).values.unbind(-1)
            assert float((best - second).min()) > 0.01


def test_the_smoke_tier_has_the_quick_scenarios_alone() -> None:
    quick = {cell.overload for cell in planned("torch:cpu", "smoke").scenarios()}
    assert quick == {name for name, scenario in SCENARIOS.items() if not scenario.slow}
    assert len(planned("torch:cpu").scenarios()) > len(quick) > 15


def test_a_selection_by_dtype_layout_or_route_has_no_scenarios() -> None:
    for axis in ("dtypes", "layouts", "routes"):
        assert planned("torch:cpu", "full", **{axis: frozenset({"float32"})}).scenarios() == []


def test_a_case_selects_its_scenario_alone() -> None:
    case = "scenarios/threads.py::clipped_gradients#run"
    plan = planned("torch:cpu", "smoke", case=case)
    assert plan.knows(case)
    assert [str(cell) for cell in plan.scenarios()] == ["scenarios/threads.py::clipped_gradients"]


def test_an_unknown_scenario_is_answered_with_near_ones() -> None:
    with pytest.raises(LookupError, match="near: masks:masked_fill"):
        catalogue.find("masks:masked_fil")
    assert "scenarios/masks.py::masked_fill#run" in planned("torch:cpu").unknown_case(
        "scenarios/masks.py::masked_fil#run"
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Observation]:
    """Return a function that runs a scenario whose device side is the given function; CPU's gives three ones."""

    def observed(wrong: Callable[[], Any]) -> Observation:
        def run(device: str) -> Results:
            return {"x": torch.ones(3)} if device == "cpu" else wrong()

        monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run))
        plan = planned("torch:cpu")
        plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
        return observe(plan, "masks:made")

    return observed


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda: {"x": torch.ones(3, dtype=torch.int64)}, "dtype is int64"),
        (lambda: {"x": torch.ones(4)}, "shape is"),
        (lambda: {"x": torch.tensor([1.0, 1.0, 1.5])}, "1 of 3 elements differ"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (dict, "the device returned 0 results, CPU 1"),
    ],
)
def test_what_differs_is_named(made: Callable[[Any], Observation], wrong: Any, expected: str) -> None:
    found = made(wrong)
    assert found.status is Status.FAIL
    assert expected in said(found)


@pytest.mark.parametrize(("end", "signal"), [(os.abort, "SIGABRT"), (lambda: os._exit(3), "exit code 3")])
def test_a_scenario_that_kills_its_process_is_a_crash(
    made: Callable[[Any], Observation], end: Any, signal: str
) -> None:
    found = made(end)
    assert (found.status, found.signal) == (Status.CRASH, signal)


def refuses() -> Results:
    raise NotImplementedError("no kernel for this\nand a long list")


def has_none() -> Results:
    raise NotOffered("a second device")


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        (refuses, "not offered: no kernel for this"),
        (has_none, "not offered: a second device"),
        (lambda: {"x": NotOffered("float64")}, "not offered: x (float64)"),
        (lambda: {"all": NotOffered("float64")}, "not offered: all (float64)"),
    ],
)
def test_what_a_device_does_not_offer_is_said_and_no_failure(
    made: Callable[[Any], Observation], lacking: Any, reason: str
) -> None:
    found = made(lacking)
    assert (found.status, found.reason, found.compared) == (Status.UNSUPPORTED, reason, 0)


def test_the_rest_is_compared_where_a_part_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(device: str) -> Results:
        one, two = (1.0, 1.0) if device == "cpu" else (1.0, 2.0)
        lacking = NotOffered("float8") if device != "cpu" else torch.ones(1)
        return {"a": lacking, "b": torch.tensor(one), **({"c": torch.tensor(two)} if differs else {})}

    plan = planned("torch:cpu")
    plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
    monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run))
    differs = False
    found = observe(plan, "masks:made")
    assert (found.status, found.reason) == (Status.PASS, "not offered: a (float8)")
    differs = True
    assert observe(plan, "masks:made").status is Status.FAIL


def _signed(value: Any) -> Any:
    """Return a whole number as one whose 64 bits were read with a sign."""
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ({"item": lambda tensor: 0}, "handles:items"),
        ({"tolist": lambda tensor: [0] * len(tensor)}, "handles:items"),
        ({"item": lambda tensor: _signed(tensor.tolist())}, "handles:items"),
        ({"untyped_storage": None}, "handles:tensors_swapped"),
    ],
)
def test_the_handles_of_tensors_are_seen_to_fail(
    monkeypatch: pytest.MonkeyPatch, broken: dict[str, Any], name: str
) -> None:
    """Neither class of fault in refnpu breaks them, so the broken device is made here."""
    scenario = SCENARIOS[name]

    def run(device: str) -> Results:
        if device != "cpu":
            for method, wrong in broken.items():
                if wrong is not None:
                    monkeypatch.setattr(torch.Tensor, method, wrong)
                else:
                    monkeypatch.setattr(torch.utils, "swap_tensors", lambda one, two: None)
        return scenario.run("cpu")

    monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run, exact=True))
    plan = planned("torch:cpu")
    plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
    assert observe(plan, "masks:made").status is Status.FAIL


def test_a_scenario_does_not_wait_for_threads_that_its_parent_had() -> None:
    before = torch.get_num_threads()
    plan = planned("torch:cpu")
    torch.set_num_threads(4)
    try:
        torch.rand(1000, 1000).softmax(-1)  # large enough for all of them
        assert observe(plan, "masks:attention_mask").status is Status.PASS
    finally:
        torch.set_num_threads(before)
