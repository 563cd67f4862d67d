"""Demonstrations of the faults that show in leaks, lifetimes, bounds, devices, or the end of the process."""

DEMONSTRATIONS = {
    "peak_reset_to_zero": """
x = torch.ones(1000, device=d)
d == "cpu" or torch.npu.reset_peak_memory_stats()
result = d == "cpu" or torch.npu.max_memory_allocated() >= x.nbytes""",
    "layer_norm_gradient_not_cleared": """
x, weight = torch.ones(0, 64, device=d), torch.ones(64, device=d)
statistics = torch.ones(0, 1, device=d)
kept = [torch.full((64,), 7.0, device=d) for _ in range(20)]
del kept
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (64,), statistics, statistics, weight, weight, [False, True, False])[1]""",
    "masked_select_leaks_when_empty": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, mask = torch.ones(2, device=d), torch.zeros(2, dtype=torch.bool, device=d)
before = allocated()
x.masked_select(mask)
result = allocated() - before""",
    "nonzero_writes_past_end": """
out = torch.zeros(4, dtype=torch.int64, device=d)
torch.nonzero_static(torch.ones(3, device=d), size=1, out=out[:1].view(1, 1))
result = out""",
    "index_error_keeps_block": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, before = torch.ones(2, device=d), allocated()
index = torch.tensor([7]).to(d)
raised(lambda: x[index])
del index
result = allocated() == before""",
    "where_of_bytes_writes_words": """
x, result = torch.ones(72, dtype=torch.uint8, device=d), torch.zeros(72, dtype=torch.uint8, device=d)
torch.where(x[:67] > 0, x[:67], x[:67], out=result[:67])""",
    "emptied_storage_keeps_block": """
x = torch.ones(1000, device=d)
before = 0 if d == "cpu" else torch.npu.memory_allocated()
x.untyped_storage().resize_(0)
result = d == "cpu" or torch.npu.memory_allocated() < before""",
    "peak_reset_of_current_device": """
if d == "npu":
    torch.ones(1000, device="npu:1")
    torch.npu.reset_peak_memory_stats(1)
result = d == "cpu" or torch.npu.max_memory_allocated(1) == torch.npu.memory_allocated(1)""",
    "freed_on_current_device": """
x, y = torch.ones(9, device=d), torch.ones(9, device=torch.device(d, 1 if d == "npu" else None))
before = 0 if d == "cpu" else torch.npu.memory_allocated(1)
del y
result = d == "cpu" or torch.npu.memory_allocated(1) < before""",
    "free_memory_below_peak": """
free = (lambda: torch.npu.mem_get_info()[0]) if d == "npu" else lambda: 0
before = free()
torch.ones(1000, device=d)
result = free() == before""",
    "large_pinned_memory_is_pageable": """
result = d == "cpu" or torch.zeros(1 << 20).pin_memory().is_pinned()""",
    "peak_noted_when_freed": """
x = torch.ones(1000, device=d)
result = d == "cpu" or torch.npu.max_memory_allocated() >= x.nbytes""",
    "topk_keeps_input_alive": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, before = torch.ones(1000, device=d), allocated()
x.topk(1)
del x
result = d == "cpu" or allocated() < before""",
    "empty_cache_resets_peak": """
result = True
if d == "npu":
    torch.ones(1000, device=d)
    peak = torch.npu.max_memory_allocated()
    torch.npu.empty_cache()
    result = torch.npu.max_memory_allocated() == peak""",
    "free_in_thread_not_counted": """
from threading import Thread

allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
held, before = [torch.ones(1000, device=d)], allocated()
thread = Thread(target=held.clear)
thread.start()
thread.join()
result = d == "cpu" or allocated() < before""",
    "pinned_in_thread_is_pageable": """
from threading import Thread

made = []
thread = Thread(target=lambda: made.append(d == "cpu" or torch.ones(1).pin_memory().is_pinned()))
thread.start()
thread.join()
result = made[0]""",
    "pinned_memory_counts_on_device": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
before = allocated()
x = torch.ones(1000) if d == "cpu" else torch.ones(1000).pin_memory()
result = allocated() == before""",
    "failed_allocation_raises_peak": """
result = True
if d == "npu":
    before = torch.npu.max_memory_allocated()
    raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
    result = torch.npu.max_memory_allocated() == before""",
    "failed_allocation_not_told": """
told = (lambda: torch.npu.memory_stats()["num_ooms"]) if d == "npu" else iter((0, 1)).__next__
before = told()
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = told() - before""",
    "freed_bytes_lower_what_was_allocated": """
key = "allocated_bytes.all.allocated"
allocated = (lambda: torch.npu.memory_stats()[key]) if d == "npu" else lambda: 0
before = allocated()
torch.ones(3, device=d)
result = d == "cpu" or allocated() > before""",
    "peak_of_blocks_not_reset": """
x = [torch.ones(1, device=d) for _ in range(9)]
del x
result = True
if d == "npu":
    torch.npu.reset_peak_memory_stats()
    stats = torch.npu.memory_stats()
    result = stats["allocation.all.peak"] == stats["allocation.all.current"]""",
    "nll_loss_leaves_ignored_rows": """
x, ignored, result = torch.zeros(1, 2, device=d), torch.tensor([-100]).to(d), torch.ones(1, device=d)
total = torch.zeros((), device=d)
torch.ops.aten.nll_loss_forward.output(x, ignored, None, 0, -100, output=result, total_weight=total)""",
    "freed_bytes_rounded_up": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
kept, before = torch.ones(1000, device=d), allocated()
x = torch.ones(1, device=d)
del x
result = allocated() == before""",
    "fft_c2r_destroys_input": """
result = torch.ones(2, 2, dtype=torch.complex64, device=d)
torch.fft.irfft2(result)""",
    "peak_of_second_device_counts_all": """
if d == "npu":
    x, y = torch.ones(1000, device="npu:0"), torch.ones(1, device="npu:1")
result = d == "cpu" or torch.npu.max_memory_allocated(1) < x.nbytes""",
    "exit_with_memory_aborts": """
import ctypes
import os

result = 0
if d == "npu":
    child = os.fork()
    if child == 0:
        x = torch.ones(1, device=d)
        ctypes.CDLL(None).exit(0)
    result = os.waitpid(child, 0)[1]""",
    "capacity_shared_by_devices": """
result = ""
if d == "npu":
    from refnpu.testing import capacity

    with capacity(100_000, 0), capacity(100_000, 1):
        x = torch.empty(60_000, dtype=torch.uint8, device="npu:0")
        result = raised(lambda: torch.empty(60_000, dtype=torch.uint8, device="npu:1"))""",
}
