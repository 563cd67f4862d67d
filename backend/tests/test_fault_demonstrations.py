"""Each demonstration shows its fault: awake, the result is not CPU's; asleep, it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import refnpu.testing
from builds import needs_faults
from fault_demonstrations import DEMONSTRATIONS, MODULES, merged

pytestmark = needs_faults

HERE = Path(__file__).parent
LISTED = HERE.parent / "driver" / "include" / "refnpu" / "faults.def"

# The suite's tests show these: in the deaths of several processes, or of a process that ran another op, in
# hazards of two devices and of donated memory, in calls on a stream or a device with late work, in programs, in the
# next call, and in a process group.
# Those of the class `huge` need more memory than a test has.
SHOWN_BY_THE_SUITE = {
    "crash_in_some_processes", "crash_after_sort", "peer_copy_overtakes_target", "peer_copy_not_awaited",
    "staged_peer_copy_not_awaited", "staged_peer_copy_on_own_stream", "staged_peer_copy_overtakes_target",
    "staged_upload_reads_late",
    "lstm_gradient_needs_hidden", "rng_state_of_current_device", "storage_resized_on_current_device",
    "stream_block_keeps_other_device",
    "stream_block_left_by_error", "current_stream_of_all_threads", "load_on_current_device",
    "checkpoint_state_not_kept", "fork_not_noticed", "compiled_kernel_by_name", "compiled_on_default_stream",
    "compiled_host_tensors_not_kept", "pool_rounds_down", "reserved_not_lowered", "staged_download_not_awaited",
    "event_blocks_current_stream", "event_time_of_recording", "current_device_synchronized",
    "gradients_on_default_stream", "group_reads_default_stream", "freed_after_first_stream",
    "freed_after_current_stream", "pinned_view_use_forgotten", "partial_run_passes_barriers",
    "partial_run_keeps_first_argument", "current_stream_not_recorded",
    "written_argument_counts_as_read", "query_starts_no_recorded_work",
    "softmax_on_first_device", "second_device_sums_on_default_stream", "cat_on_default_stream",
    "fallback_reads_default_stream",
    "donated_memory_stays_readable", "error_told_by_next_launch", "fill_count_in_32_bits", "copy_bytes_in_32_bits",
    "index_offset_in_32_bits", "gemm_row_in_32_bits", "nonzero_position_in_32_bits", "gathered_in_reverse",
    "received_tensor_dropped", "future_without_result", "scattered_sum_of_own", "coalesced_gather_of_first",
    "group_reduce_op_ignored", "group_broadcast_of_first", "group_splits_ignored", "compiled_result_on_current_device",
    "compiled_result_made_contiguous", "context_of_first_device_alone",
}  # fmt: skip


@pytest.fixture(scope="module")
def shown() -> dict[str, dict[str, str]]:
    """Return the difference that each demonstration shows, asleep and awake, in a process that forks for each."""
    program = [sys.executable, "-W", "ignore", "-m", "fault_demonstrations"]
    done = subprocess.run(program, cwd=HERE, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("fault", DEMONSTRATIONS)
def test_each_fault_makes_its_demonstration_differ_from_cpu(shown: dict[str, dict[str, str]], fault: str) -> None:
    assert shown["asleep"][fault] == ""
    assert shown["awake"][fault] != ""


def test_every_fault_is_demonstrated_or_tried_in_another_test() -> None:
    others = "\n".join(f.read_text(encoding="utf-8") for f in HERE.glob("test_*.py") if f != Path(__file__))
    tried = {fault for fault in refnpu.testing.faults() if f'"{fault}"' in others}
    assert refnpu.testing.faults().keys() == DEMONSTRATIONS.keys() | tried | SHOWN_BY_THE_SUITE


def test_a_demonstration_stands_in_the_module_of_the_class_of_its_fault() -> None:
    kinds = dict(re.findall(r"^FAULT\((\w+), (\w+),", LISTED.read_text(encoding="utf-8"), re.MULTILINE))
    # a module's name is fault_demonstrations.CLASS
    stands_in = {fault: module.__name__.split(".")[1] for module in MODULES for fault in module.DEMONSTRATIONS}
    assert stands_in == {fault: kinds[fault] for fault in DEMONSTRATIONS}


def test_a_fault_in_two_modules_is_refused() -> None:
    assert merged([{"tail_lost": "result = 1"}, {"head_lost": "result = 2"}]).keys() == {"tail_lost", "head_lost"}
    with pytest.raises(ValueError, match="more than one demonstration of tail_lost"):
        merged([{"tail_lost": "result = 1"}, {"head_lost": "result = 2", "tail_lost": "result = 3"}])
