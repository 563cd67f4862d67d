"""Memory statistics in bytes, under the names that torch's devices share."""

from __future__ import annotations

from refnpu import _C
from refnpu._index import Device, device_index


def memory_allocated(device: Device | None = None) -> int:
    """Return the bytes in live blocks."""
    if _C.fault("memory_allocated_of_current_device"):
        device = None
    return _C.memory_stats(device_index(device))["live_bytes"]


def max_memory_allocated(device: Device | None = None) -> int:
    """Return the peak of :func:`memory_allocated` since the start or :func:`reset_peak_memory_stats`."""
    return _C.memory_stats(device_index(device))["peak_bytes"]


def memory_reserved(device: Device | None = None) -> int:
    """Return the bytes that the allocator mode holds, including freed blocks that it keeps for reuse."""
    return _C.memory_stats(device_index(device))["reserved_bytes"]


def max_memory_reserved(device: Device | None = None) -> int:
    """Return the peak of :func:`memory_reserved` since the start or :func:`reset_peak_memory_stats`."""
    return _C.memory_stats(device_index(device))["peak_reserved_bytes"]


def reset_peak_memory_stats(device: Device | None = None) -> None:
    """Reset the peaks to the current values."""
    _C.reset_peak_memory(_C.current_device() if _C.fault("peak_reset_of_current_device") else device_index(device))


def mem_get_info(device: Device | None = None) -> tuple[int, int]:
    """Return the (free, total) bytes."""
    stats = _C.memory_stats(device_index(device))
    held = stats["peak_bytes"] if _C.fault("free_memory_below_peak") else stats["live_bytes"]
    return max(0, stats["capacity"] - held), stats["capacity"]


def memory_stats(device: Device | None = None) -> dict[str, int]:
    """Return the driver's statistics, under its own keys and under those of ``torch.cuda.memory_stats``."""
    stats = _C.memory_stats(device_index(device))
    if _C.fault("memory_stats_resets_peak"):
        reset_peak_memory_stats(device)
    common = {
        "allocated_bytes.all.current": stats["live_bytes"],
        "allocated_bytes.all.peak": stats["peak_bytes"],
        "allocated_bytes.all.allocated": stats["allocated_bytes"],
        "allocated_bytes.all.freed": stats["freed_bytes"],
        "allocation.all.current": stats["live_blocks"],
        "allocation.all.peak": stats["peak_blocks"],
        "allocation.all.allocated": stats["allocations"],
        "allocation.all.freed": stats["frees"],
        "reserved_bytes.all.current": stats["reserved_bytes"],
        "reserved_bytes.all.peak": stats["peak_reserved_bytes"],
        "reserved_bytes.all.allocated": stats["reserved_bytes"] + stats["returned_bytes"],
        "reserved_bytes.all.freed": stats["returned_bytes"],
        "segment.all.current": stats["segments"],
        "segment.all.peak": stats["peak_segments"],
        "segment.all.allocated": stats["segments"] + stats["returned_segments"],
        "segment.all.freed": stats["returned_segments"],
        "num_ooms": stats["failed_allocations"],
    }
    return stats | common


def empty_cache() -> None:
    """Return the memory that the allocator mode keeps for reuse to the host."""
    _C.empty_cache()
