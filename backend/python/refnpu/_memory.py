"""Memory statistics under the names that torch's devices share; figures in bytes."""

from __future__ import annotations

from refnpu import _C
from refnpu._index import Device, device_index


def memory_allocated(device: Device | None = None) -> int:
    """Bytes in live blocks."""
    if _C.fault("memory_allocated_of_current_device"):
        device = None
    return _C.memory_stats(device_index(device))["live_bytes"]


def max_memory_allocated(device: Device | None = None) -> int:
    """The highest that :func:`memory_allocated` has been since the start or :func:`reset_peak_memory_stats`."""
    return _C.memory_stats(device_index(device))["peak_bytes"]


def memory_reserved(device: Device | None = None) -> int:
    """Bytes that the allocator mode holds: more than :func:`memory_allocated` where it keeps freed blocks for reuse."""
    return _C.memory_stats(device_index(device))["reserved_bytes"]


def max_memory_reserved(device: Device | None = None) -> int:
    """The highest that :func:`memory_reserved` has been since the start or :func:`reset_peak_memory_stats`."""
    return _C.memory_stats(device_index(device))["peak_reserved_bytes"]


def reset_peak_memory_stats(device: Device | None = None) -> None:
    """Start the highest figures again from what is held now."""
    _C.reset_peak_memory(_C.current_device() if _C.fault("peak_reset_of_current_device") else device_index(device))


def mem_get_info(device: Device | None = None) -> tuple[int, int]:
    """(free, total) bytes."""
    stats = _C.memory_stats(device_index(device))
    held = stats["peak_bytes"] if _C.fault("free_memory_below_peak") else stats["live_bytes"]
    return max(0, stats["capacity"] - held), stats["capacity"]


def memory_stats(device: Device | None = None) -> dict[str, int]:
    """The driver's statistics, and the same under the keys that ``torch.cuda.memory_stats`` uses."""
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
    """Give back to the host what the allocator mode keeps for reuse."""
    _C.empty_cache()
