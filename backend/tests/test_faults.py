"""Each fault of the runtime and the fallback, awake, does what its description says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from builds import needs_faults
from refnpu import testing
from refnpu.testing import fault

pytestmark = needs_faults
Python = Callable[..., subprocess.CompletedProcess[str]]


def test_faults_have_descriptions_and_are_asleep_by_default() -> None:
    assert testing.active_fault() is None
    assert testing.faults()["double_free"] == "growing a storage frees the old block twice"


def test_waking_an_unknown_fault_is_refused_with_a_near_name() -> None:
    with pytest.raises(ValueError, match="unknown fault 'leak_on_eror'; did you mean 'leak_on_error'"):
        testing.set_fault("leak_on_eror")


def test_a_question_for_a_fault_names_the_innermost_operator() -> None:
    x = torch.ones(2, 3, device="npu")
    with testing.questions() as asked:
        x.t().contiguous()
    assert {operator for fault, operator in asked if fault == "copy_ignores_strides"} == {"_copy_from"}
    assert not {fault for fault, _ in asked} & {"crash_in_kernel", "leak_on_error"}
    assert testing.active_fault() is None


def test_questions_are_recorded_only_inside_the_with_block() -> None:
    with testing.questions() as asked:
        pass
    torch.ones(2, device="npu").neg()
    with testing.questions() as again:
        pass
    assert asked == again == set()


FORKS = """
import os, torch
from refnpu import testing

asked = testing.trace_faults()
child = os.fork()
if not child:
    torch.ones(2, 3, device="npu").t().contiguous()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
faults = asked()
print("copy_ignores_strides" in faults, "crash_in_kernel" in faults, asked())
"""


def test_a_trace_of_faults_sees_the_questions_of_forked_processes(python: Python) -> None:
    assert python(FORKS).stdout.split() == ["True", "False", "set()"]


def test_fallback_not_copied_back_leaves_a_written_argument_as_it_was() -> None:
    x = torch.full((3,), 0.5, device="npu")
    with fault("fallback_not_copied_back"):
        x.erfinv_()
    assert x.tolist() == [0.5] * 3


def test_fallback_copies_back_to_contiguous_spoils_a_transposed_tensor() -> None:
    x = torch.arange(6.0, device="npu").view(2, 3).t()
    with fault("fallback_copies_back_to_contiguous"):
        x.lgamma_()
    assert x.tolist() != torch.arange(6.0).view(2, 3).t().lgamma_().tolist()


def test_fallback_output_dtype_wrong_gives_float32_for_float64() -> None:
    with fault("fallback_output_dtype_wrong"):
        assert torch.cdist(*torch.ones(2, 3, 4, dtype=torch.float64, device="npu")).dtype == torch.float32


def test_wrong_error_type_turns_an_index_error_into_a_runtime_error() -> None:
    x = torch.ones(3, device="npu")
    with fault("wrong_error_type"), pytest.raises(RuntimeError):
        torch.unique(x, dim=4)
    with pytest.raises(IndexError):
        torch.unique(x, dim=4)


@pytest.mark.usefixtures("no_garbage")
def test_leak_on_error_leaves_a_block_behind() -> None:
    x = torch.ones(3, device="npu")
    before = torch.npu.memory_stats()["live_blocks"]
    with fault("leak_on_error"), pytest.raises(IndexError):
        torch.unique(x, dim=4)
    assert torch.npu.memory_stats()["live_blocks"] == before + 1


def test_mutates_const_input_changes_an_input() -> None:
    x = torch.full((3,), 0.5, device="npu")
    with fault("mutates_const_input"):
        torch.erfinv(x)
    assert x.tolist() != [0.5] * 3


def test_block_too_short_makes_a_copy_run_out_of_bounds() -> None:
    with fault("block_too_short"), pytest.raises(RuntimeError, match="out of bounds"):
        torch.ones(4, device="npu").cpu()


@pytest.mark.usefixtures("no_garbage")
def test_scratch_grows_takes_64_more_bytes_in_as_many_blocks() -> None:
    x = torch.ones(3, device="npu")
    with fault("scratch_grows"):
        torch.nonzero(x)
        before = torch.npu.memory_stats()
        torch.nonzero(x)
    after = torch.npu.memory_stats()
    assert after["live_blocks"] == before["live_blocks"]
    assert after["live_bytes"] == before["live_bytes"] + 64


def test_source_freed_early_makes_masked_scatter_read_freed_memory() -> None:
    x, source = torch.zeros(8, device="npu"), torch.arange(16.0, device="npu")[::2]
    with fault("source_freed_early"), testing.fill(freed="0x00"):
        x.masked_scatter_(torch.ones(8, dtype=torch.bool, device="npu"), source)
    assert x.tolist() != source.tolist()


def test_triangle_not_cleared_leaves_fresh_memory_in_the_triangle() -> None:
    with fault("triangle_not_cleared"), testing.fill("nan"):
        assert torch.ones(2, 2, device="npu").triu().isnan().sum() == 1


def test_output_alias_lost_makes_a_view_a_copy() -> None:
    x = torch.ones(4, device="npu")
    with fault("output_alias_lost"):
        assert x.view(2, 2).data_ptr() != x.data_ptr()


def test_view_offset_dropped_makes_a_view_begin_at_zero() -> None:
    x = torch.arange(4.0, device="npu")
    with fault("view_offset_dropped"):
        assert x[2:].storage_offset() == 0


def test_seed_ignored_keeps_the_former_seed() -> None:
    torch.npu.manual_seed(1)
    with fault("seed_ignored"):
        torch.npu.manual_seed(2)
    assert torch.npu.initial_seed() == 1


def test_second_device_lands_on_first_puts_a_tensor_on_npu_0() -> None:
    with fault("second_device_lands_on_first"):
        assert torch.empty(1, device="npu:1").device == torch.device("npu:0")


def test_double_free_ends_the_process_with_a_driver_message(python: Python) -> None:
    done = python("import refnpu, torch; torch.ones(1, device='npu').resize_(9)", REFNPU_FAULT="double_free")
    assert done.returncode == -6
    assert "refnpu: double free: npuFree(" in done.stderr


MASKED_FILL = """
import refnpu, torch
torch.ones(3, device="npu").zero_()
print("still here", flush=True)
torch.ones(3, device="npu").masked_fill_(torch.ones(3, dtype=torch.bool, device="npu"), 2)
"""


def test_crash_in_kernel_kills_the_process_at_masked_fill(python: Python) -> None:
    done = python(MASKED_FILL, REFNPU_FAULT="crash_in_kernel")
    assert (done.returncode, done.stdout) == (-11, "still here\n")


def test_hang_in_kernel_never_ends_at_masked_fill() -> None:
    command = [sys.executable, "-W", "ignore", "-c", MASKED_FILL]
    variables = os.environ | {"REFNPU_FAULT": "hang_in_kernel"}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as hangs:
        try:
            assert hangs.stdout
            assert hangs.stdout.readline() == "still here\n"
            with pytest.raises(subprocess.TimeoutExpired):
                hangs.wait(2)
        finally:
            hangs.kill()
