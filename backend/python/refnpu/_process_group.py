"""Process groups: collective calls on tensors of the device, over gloo and through copies on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from refnpu import _C
from refnpu._group_faults import (
    Result,
    barrier_with_faults,
    count_root_in_world,
    in_memory_order,
    with_faults,
    with_mistaken_options,
)

#: The name of the device's backend in ``torch.distributed.init_process_group()``, which need not be given.
NAME = "refnpu"

# The calls that write their first argument, under the names that they have in any torch version.
_CALLS = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "gather", "scatter", "recv", "recv_anysource",
    "allgather", "allgather_coalesced",
    "_allgather_base", "all_gather_single", "allgather_into_tensor_coalesced", "all_gather_single_coalesced",
    "reduce_scatter",
    "_reduce_scatter_base", "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced",
    "alltoall", "alltoall_base", "all_to_all_single",
)  # fmt: skip


class ProcessGroup(dist.ProcessGroup):
    """A group of processes that send each other tensors of the device, or of CPU, through gloo.

    A call copies its tensors to the host, which waits for the work of the current stream, and starts gloo. The result
    is copied to the device by the handle that the call returns: see :class:`Work`.

    Not offered: calls without copies on the host, sparse tensors, batches of calls (``_coalescing_manager``), the
    creation of a group by splitting another one, and all that gloo does not offer.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        gloo = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
        gloo._set_sequence_number_for_group()
        self._on_host = dist.ProcessGroup(store, rank, size)
        for group, devices in ((self, ("cpu", "npu")), (self._on_host, ("cpu",))):
            group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
            for device in devices:  # torch asks this group's own for their name and features
                group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, gloo)

    def getBackendName(self) -> str:  # noqa: N802  # torch's name
        """Return the name of the device's backend."""
        return NAME

    def send(self, tensors: list[torch.Tensor], *where: int) -> Work:
        """Send a tensor to another process."""
        return Work(self._on_host.send([_on_host(x) for x in tensors], *where), [])

    def barrier(self, *options: Any, **named: Any) -> dist.Work:
        """Start a barrier of all processes. The handle waits for all of them, but not for work of the device."""
        return barrier_with_faults(self._on_host.barrier(*options, **named))

    def _start_coalescing(self, device: torch.device) -> None:
        raise NotImplementedError(
            f"the process group {NAME!r} does not offer batches of calls: make one call at a time"
        )

    def call(self, name: str, written: Any, *others: Any, **named: Any) -> Work:
        """Start one of ``_CALLS`` on copies of its tensors. Return a handle that copies the result to the device."""
        received, sent = _on_host(written), with_mistaken_options(name, [_on_host(x) for x in others])
        if _C.fault("group_root_counted_in_world"):
            count_root_in_world(sent, dist.get_process_group_ranks(self))
        work = getattr(self._on_host, name)(received, *sent, **named)
        results = list(zip(_tensors(written), _tensors(received), strict=True))
        return Work(work, with_faults(name, results, sent, self))


# Handles that nothing has waited for. If only C++ has a handle, torch 2.6 does not keep its Python part.
_WAITED_FOR: set[Work] = set()


class Work(dist.Work):
    """The handle of a call that gloo executes.

    ``wait()`` waits for gloo and copies the result to the device, on the caller's current stream. So the work that is
    submitted to this stream afterwards sees the result. Without ``wait()`` the device's tensors do not change, unless
    ``is_completed()`` has returned True. ``get_future()`` waits, so that its future is done.
    """

    def __init__(self, on_host: dist.Work, results: list[Result]) -> None:
        super().__init__()
        _WAITED_FOR.add(self)
        self._on_host = on_host
        self._results = results  # tensors of the caller, and their values on the host
        self._tensors = [tensor for tensor, _ in results]

    def wait(self, *timeout: timedelta) -> bool:
        """Wait for gloo and copy the result to the device. Raises what gloo raises."""
        done: bool = self._on_host.wait(*timeout)
        if not _C.fault("group_handle_keeps_tensors"):
            _WAITED_FOR.discard(self)
        results = self._results
        if not _C.fault("group_result_written_by_each_wait"):
            self._results = []
        for tensor, received in results:
            if tensor is not received:
                inside = tensor.storage_offset() > 0 and tensor.device.type == "npu"
                if inside and _C.fault("group_result_to_start_of_storage"):
                    tensor = tensor.detach().as_strided(tensor.shape, tensor.stride(), 0)  # noqa: PLW2901
                tensor.copy_(received)
        return done

    def is_completed(self) -> bool:
        """Return whether gloo is done, and if so, copy the result to the device."""
        if _C.fault("group_completed_without_result"):
            return bool(self._on_host.is_completed())
        return bool(self._on_host.is_completed()) and self.wait()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Wait, and return a completed future with the written tensors."""
        if _C.fault("future_without_result"):
            self._results = []
        self.wait()
        devices = list({x.device for x in self._tensors if x.device.type != "cpu"})
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future(devices=devices)
        future.set_result(self._tensors)
        return future

    def result(self) -> list[torch.Tensor]:
        """Return the written tensors."""
        return self._tensors


def _on_host(value: Any) -> Any:
    """Return an argument with dense copies of its tensors on the host, since gloo takes strided tensors for dense ones.

    A tensor of CPU is not copied.
    """
    if isinstance(value, torch.Tensor):
        if value.device.type == "cpu":
            return value.detach()
        if _C.fault("group_reads_default_stream"):
            with torch.npu.stream(torch.npu.default_stream(value.device)):
                return value.detach().cpu().contiguous()
        on_host = value.detach().cpu()
        return in_memory_order(on_host) if _C.fault("group_input_in_memory_order") else on_host.contiguous()
    return [_on_host(x) for x in value] if isinstance(value, (list, tuple)) else value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _tensors(x)


def _create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    return ProcessGroup(store, rank, size, timeout)


def _method(name: str) -> Callable[..., Work]:
    def call(group: ProcessGroup, *arguments: Any, **named: Any) -> Work:
        return group.call(name, *arguments, **named)

    call.__name__ = name
    return call


def install() -> None:
    """Make the group the default one for tensors of the device, if torch has gloo."""
    if not dist.is_available() or not dist.is_gloo_available():
        return
    for name in _CALLS:
        setattr(ProcessGroup, name, _method(name))
    dist.Backend.register_backend(NAME, _create, devices=["npu"])
