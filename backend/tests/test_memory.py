"""Device memory as torch sees it: statistics, out of memory, storages, pinned memory."""

from __future__ import annotations

import copy
import signal
import subprocess
from collections.abc import Callable

import pytest
import torch
from builds import needs_faults
from refnpu import testing


@pytest.mark.usefixtures("no_garbage")
def test_memory_statistics_count_each_device() -> None:
    before = torch.npu.memory_allocated(0), torch.npu.memory_allocated("npu:1")
    x = torch.empty(1000, dtype=torch.uint8, device="npu:1")
    assert (torch.npu.memory_allocated(0), torch.npu.memory_allocated("npu:1")) == (before[0], before[1] + 1000)
    torch.npu.reset_peak_memory_stats(1)
    del x
    assert torch.npu.memory_allocated(1) == before[1]
    assert torch.npu.max_memory_allocated(1) == before[1] + 1000


@pytest.mark.usefixtures("no_garbage")
def test_memory_statistics_have_the_names_that_torch_uses() -> None:
    x = torch.empty(8, device="npu")
    stats = torch.npu.memory_stats()
    assert stats["allocated_bytes.all.current"] == stats["live_bytes"] >= x.nbytes
    assert torch.npu.memory_reserved() == torch.npu.memory_allocated()
    free, total = torch.npu.mem_get_info()
    assert free == total - stats["live_bytes"]


@pytest.mark.usefixtures("no_garbage")
@pytest.mark.skipif(not hasattr(torch.accelerator, "memory_allocated"), reason="torch.accelerator.memory_* is 2.9's")
def test_the_accelerator_module_reports_the_same_memory() -> None:
    x = torch.empty(8, device="npu")
    assert torch.accelerator.memory_allocated() == torch.npu.memory_allocated() >= x.nbytes
    assert torch.accelerator.max_memory_allocated() == torch.npu.max_memory_allocated()
    torch.accelerator.empty_cache()


@needs_faults
@pytest.mark.skipif(not hasattr(torch.accelerator, "get_memory_info"), reason="get_memory_info is 2.10's")
def test_the_fault_of_the_free_memory_tells_of_the_current_device() -> None:
    x = torch.empty(1 << 20, device="npu:1")
    free = torch.accelerator.get_memory_info(0)
    with testing.fault("memory_info_of_current_device"):
        assert torch.accelerator.get_memory_info(1) == free
    assert torch.accelerator.get_memory_info(1)[0] <= free[1] - x.nbytes


@pytest.mark.usefixtures("no_garbage")
@needs_faults
@pytest.mark.skipif(not hasattr(torch.accelerator, "max_memory_allocated"), reason="max_memory_allocated is 2.9's")
def test_the_fault_of_the_accelerator_module_tells_what_is_allocated_now() -> None:
    torch.empty(1 << 20, device="npu")
    with testing.fault("accelerator_peak_is_current"):
        assert torch.accelerator.max_memory_allocated() == torch.npu.memory_allocated()
    assert torch.accelerator.max_memory_allocated() == torch.npu.max_memory_allocated() > torch.npu.memory_allocated()


def test_fresh_memory_holds_the_chosen_fill() -> None:
    with testing.fill("nan"):
        assert torch.empty(5, device="npu").isnan().all()
    with testing.fill("0x01"):
        assert torch.empty(3, dtype=torch.uint8, device="npu").tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="unknown fill 'nul'"), testing.fill("nul"):
        pass


def test_a_process_returns_to_its_own_fill(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    script = """
import refnpu, torch
from refnpu import testing
with testing.fill("0x01"):
    pass
print(torch.empty(3, dtype=torch.uint8, device="npu").tolist())
"""
    assert python(script, REFNPU_FILL_FRESH="0xAB").stdout == "[171, 171, 171]\n"


def test_a_pool_keeps_freed_memory_until_empty_cache(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    script = """
import refnpu, torch
torch.empty(1000, device="npu")
before = torch.npu.memory_reserved()
torch.empty(1000, device="npu")
print(torch.npu.memory_allocated(), before > 4000, torch.npu.memory_stats()["reused_blocks"])
torch.npu.empty_cache()
print(torch.npu.memory_reserved(), torch.npu.max_memory_reserved() == before)
"""
    done = python(script, REFNPU_ALLOCATOR="pool")
    assert done.stdout.split() == ["0", "True", "1", "0", "True"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_keeps_large_blocks(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    script = """
import refnpu, torch
x = [torch.empty(size, device="npu") for size in (1000, 4 << 20)]
del x
torch.npu.empty_cache()
print(torch.npu.memory_reserved() >= 16 << 20)
"""
    done = python(script, REFNPU_ALLOCATOR="pool", REFNPU_FAULT="empty_cache_keeps_large")
    assert done.stdout.split() == ["True"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_joins_one_side_alone(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    script = """
import refnpu, torch
x, y, z = (torch.empty(1000, device="npu") for _ in range(3))
del x, z
del y
torch.npu.empty_cache()
print(torch.npu.memory_reserved() > 0)
"""
    done = python(script, REFNPU_ALLOCATOR="pool", REFNPU_FAULT="pool_middle_block_merges_one_side")
    assert done.stdout.split() == ["True"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_trims_the_current_device_alone(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
x = torch.empty(1000, device="npu:1")
del x
torch.npu.empty_cache()
print(torch.npu.memory_reserved(1) > 0)
"""
    done = python(script, REFNPU_ALLOCATOR="pool", REFNPU_FAULT="empty_cache_of_current_device_alone")
    assert done.stdout.split() == ["True"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_refuses_what_its_free_memory_would_serve(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
x = [torch.empty(5 << 20, dtype=torch.uint8, device="npu") for _ in range(10)]
del x
try:
    torch.empty(40 << 20, dtype=torch.uint8, device="npu")
except torch.OutOfMemoryError:
    print("refused")
"""
    done = python(
        script, REFNPU_ALLOCATOR="pool", REFNPU_CAPACITY=str(64 << 20), REFNPU_FAULT="pool_keeps_cached_when_full"
    )
    assert done.stdout.split() == ["refused"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_takes_memory_of_another_device(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
x = torch.empty(1000, device="npu:0")
del x
y = torch.empty(1000, device="npu:1")
print(torch.npu.memory_reserved(1))
"""
    done = python(script, REFNPU_ALLOCATOR="pool", REFNPU_FAULT="pool_takes_from_other_device")
    assert done.stdout.split() == ["0"], done.stderr


@needs_faults
def test_the_fault_of_the_pool_forgets_the_rest_of_a_segment(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
x = torch.empty(1000, device="npu")
print(torch.npu.max_memory_reserved() < torch.npu.memory_reserved())
"""
    done = python(script, REFNPU_ALLOCATOR="pool", REFNPU_FAULT="pool_peak_counts_requests")
    assert done.stdout.split() == ["True"], done.stderr


def test_a_host_access_to_protected_memory_ends_the_process(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import ctypes, refnpu, torch
x = torch.arange(3.0, device="npu") + 1
print(x.tolist(), flush=True)
ctypes.string_at(x.data_ptr(), 4)
"""
    done = python(script, REFNPU_ALLOCATOR="guard", REFNPU_PROTECT="1")
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "[1.0, 2.0, 3.0]\n")


@pytest.mark.usefixtures("no_garbage")
def test_a_full_device_raises_the_out_of_memory_error_of_torch() -> None:
    with testing.capacity(torch.npu.memory_allocated() + 100), pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(101, dtype=torch.uint8, device="npu")
    assert "npuMalloc(101 bytes) on npu:0" in str(error.value)


@pytest.mark.usefixtures("no_garbage")
def test_an_empty_tensor_takes_no_block() -> None:
    before = torch.npu.memory_stats()["live_blocks"]
    x = torch.empty(0, 3, device="npu")
    assert x.data_ptr() == 0
    assert torch.npu.memory_stats()["live_blocks"] == before


def test_a_storage_can_be_resized_copied_and_cloned() -> None:
    x = torch.arange(3.0, device="npu")
    storage = x.untyped_storage()
    storage.resize_(20)
    assert storage.nbytes() == 20
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert storage.cpu().nbytes() == 20
    twin = copy.deepcopy(x)
    assert twin.tolist() == [0.0, 1.0, 2.0]
    assert twin.data_ptr() != x.data_ptr()


def test_the_method_npu_moves_tensors_and_modules() -> None:
    layer = torch.nn.Linear(2, 2).npu()
    assert layer.weight.is_npu
    assert torch.ones(1).npu(1).device == torch.device("npu:1")
    assert layer.cpu().weight.device.type == "cpu"


def test_pinned_memory_is_known_to_the_device() -> None:
    x = torch.arange(4.0).pin_memory()
    assert x.is_pinned()
    assert x.device.type == "cpu"
    assert not torch.ones(4).is_pinned()
    assert torch.empty(4, pin_memory=True).is_pinned()
    assert x.to("npu", non_blocking=True).tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("make", [torch.empty, lambda size, **of: torch.empty_strided(size, (1,), **of)])
def test_memory_of_the_device_cannot_be_pinned(make: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        make((4,), device="npu", pin_memory=True)


def test_dlpack_shares_memory_without_a_copy() -> None:
    x = torch.arange(4.0, device="npu:1")
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert (y.device, y.data_ptr()) == (x.device, x.data_ptr())


def test_the_gradient_of_a_tensor_is_on_its_device() -> None:
    for device in ("npu:0", "npu:1"):
        x = torch.ones(2, device=device, requires_grad=True)
        (x * 2).sum().backward()
        assert x.grad.device == torch.device(device)
