"""Allocations that need freed memory, on a device with little memory. On CPU each property holds.

They run only if little memory is free: other programs may need the memory of a large device.
"""

from __future__ import annotations

import torch

from conformance.scenarios.asking import another, held, module_of, named
from conformance.scenarios.busy_streams import CALLS, SIZE, busy_stream
from conformance.scenarios.model import NotOffered, Results, scenario, unless_first

FEW_BYTES = 1 << 30  # bytes of free memory, at most
PARTS = 16  # parts of the free memory
FREED = 12  # parts that tensors take
#: Parts that an allocation needs: more than the tensors leave, and few enough to fit into contiguous memory that has
#: something in its middle.
NEEDED = 5


@scenario(exact=True, area="memory", accelerators=True)
def freed_memory_is_used_again(device: str) -> Results:
    """Memory that tensors have given back serves an allocation that needs it, whether the allocator keeps it or not."""

    def serves() -> bool:
        tensors = _parts_of_free(device)
        needed = NEEDED * tensors[0].nbytes
        del tensors
        return _is_served(device, needed)

    return held(device, {"serves": serves})


@scenario(exact=True, area="memory", accelerators=True)
def memory_in_use_is_waited_for(device: str) -> Results:
    """An allocation that needs memory which was freed waits for the stream that still uses it. It does not fail."""

    def serves() -> bool:
        tensors = _parts_of_free(device)
        needed = NEEDED * tensors[0].nbytes
        with busy_stream(device, 8 * CALLS) as stream:
            while tensors:
                used = tensors.pop()[:SIZE].add_(1)
                if stream is not None:
                    used.record_stream(stream)
            del used
        return _is_served(device, needed)

    return held(device, {"serves": serves})


@scenario(exact=True, area="memory", accelerators=True)
def devices_have_memory_of_their_own(device: str) -> Results:
    """What is in use on one device takes nothing from what another one has."""

    def serve() -> bool:
        before = _free(device)
        in_use = _parts_of_free(another(device))
        free = _free(device)
        serves = _is_served(device, before // PARTS * FREED)
        del in_use
        return serves and free == before

    return held(device, {"serve": serve})


def _free(device: str) -> int:
    """Return the free memory of a device in bytes. Raises NotOffered if there is more than ``FEW_BYTES``."""
    named(module_of(device), "empty_cache")()
    free = int(named(module_of(device), "mem_get_info")(*unless_first(device))[0])  # type: ignore[index]
    if free > FEW_BYTES:
        raise NotOffered(f"a device with at most {FEW_BYTES} bytes of free memory")
    return free


def _parts_of_free(device: str) -> list[torch.Tensor]:
    """Return tensors that take most of a device's free memory. Raises NotOffered as :func:`_free` does."""
    size = _free(device) // PARTS
    return [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(FREED)]


def _is_served(device: str, size: int) -> bool:
    """Return whether the device has memory for a tensor of ``size`` bytes."""
    try:
        torch.empty(size, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        return False
    return True
