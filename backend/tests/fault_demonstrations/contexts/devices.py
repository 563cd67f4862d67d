"""Demonstrations of the faults that show on another device, in the choice of the current device, or after an error."""

DEMONSTRATIONS = {
    "fallback_leaves_device_current": """
x = torch.ones(3, device=torch.device(d, 1 if d == "npu" else None))
torch.erfinv(x, out=torch.empty_like(x))
result = torch.accelerator.current_device_index()""",
    "failed_allocation_counted": """
blocks = (lambda: torch.npu.memory_stats()["live_blocks"]) if d == "npu" else lambda: 0
before = blocks()
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = blocks() - before""",
    "out_of_memory_sticks": """
x = torch.ones(3, device=d)
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = raised(lambda: x.neg())""",
    "device_named_by_string_is_current": """
if d == "npu":
    torch.npu.set_device("npu:1")
result = d == "cpu" or torch.npu.current_device() == 1""",
    "device_of_host_by_index": """
result = "ValueError" if d == "cpu" else raised(lambda: torch.npu.get_device_name("cpu:0"))""",
    "failed_fallback_leaves_device": """
x = torch.tensor([-1], device=torch.device(d, 1 if d == "npu" else None))
raised(x.bincount)
result = torch.accelerator.current_device_index()""",
    "device_without_index_is_first": """
if d == "npu":
    torch.npu.set_device(1)
result = d == "cpu" or torch.npu.current_stream("npu").device.index == 1""",
    "synchronized_device_stays_current": """
d == "cpu" or torch.npu.synchronize(1)
result = torch.accelerator.current_device_index()""",
    "exchange_device_returns_new": """
if d == "npu":
    x = torch.ones(2, device="npu:1")
    x[:1].copy_(x[1:])
result = torch.accelerator.current_device_index()""",
    "fallback_result_on_current_device": """
x = torch.ones(2, device=torch.device(d, 1 if d == "npu" else None))
result = torch.logcumsumexp(x, 0).device == x.device""",
    "bad_set_device_resets_current": """
result = 1
if d == "npu":
    torch.npu.set_device(1)
    raised(lambda: torch.npu.set_device(9))
    result = torch.npu.current_device()""",
    "load_leaves_device_current": """
from io import BytesIO

file = BytesIO()
torch.save(torch.ones(2, device=torch.device(d, 1 if d == "npu" else None)), file)
file.seek(0)
torch.load(file)
result = torch.accelerator.current_device_index()""",
    "is_available_uses_device": """
result = False
if d == "npu":
    torch.npu.is_available()
    result = torch.npu.is_initialized()""",
    "is_initialized_stays_false": """
torch.ones(1, device=d)
result = d == "cpu" or torch.npu.is_initialized()""",
    "set_device_of_negative_is_last": """
result = True
if d == "npu":
    torch.npu.set_device(-1)
    result = torch.npu.current_device() == 0""",
    "memory_allocated_of_current_device": """
if d == "npu":
    x = torch.ones(1000, device="npu:1")
result = d == "cpu" or torch.npu.memory_allocated("npu:1") >= x.nbytes""",
    "pinned_before_first_use_is_pageable": 'result = d == "cpu" or torch.ones(1).pin_memory().is_pinned()',
    "device_block_left_by_error": """
from contextlib import suppress

result = 0
if d == "npu":
    with suppress(KeyError), torch.npu.device(1):
        raise KeyError
    result = torch.npu.current_device()""",
    "device_block_restores_where_made": """
result = 1
if d == "npu":
    block = torch.npu.device(0)
    torch.npu.set_device(1)
    with block:
        pass
    result = torch.npu.current_device()
    torch.npu.set_device(0)""",
    "save_forgets_device_index": """
import io

result = True
if d == "npu":
    x, file = torch.ones(1, device="npu:1"), io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    result = torch.load(file).device == x.device""",
    "manual_seed_all_uses_device": """
torch.manual_seed(1)
result = d == "npu" and torch.npu.is_initialized()""",
    "load_leaves_empty_on_host": """
import io

file = io.BytesIO()
torch.save(torch.ones(0, device=d), file)
file.seek(0)
result = torch.load(file).device.type == d""",
    "npu_method_stays_on_device": 'result = d == "cpu" or torch.ones(1, device="npu:0").npu(1).device.index == 1',
    "import_needs_a_device": """
import os
import subprocess
import sys

result = 0
if d == "npu":
    without = {**os.environ, "REFNPU_DEVICES": "0"}
    result = subprocess.run([sys.executable, "-c", "import refnpu"], env=without, capture_output=True).returncode""",
}
