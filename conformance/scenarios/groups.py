"""Process groups of two processes, and their collective calls."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, scenario
from conformance.scenarios.new_processes import results_of

PROCESSES = 2
#: Seconds for which a process waits for the other one: longer than the time limit of any cell.
PATIENCE = 3600
#: Parts of torch's message if a backend does not support a call, or if NumPy is missing, with which old versions send
#: objects.
NOT_SUPPORTED = ("not support", "Numpy is not available")
#: Part of torch's message if a backend does not support strided tensors.
NOT_STRIDED = "contiguous"
#: A collective call of ``torch.distributed`` with a tensor of this process. Returns the result of the call.
Collective = Callable[[Any, torch.Tensor], torch.Tensor]
#: The work of a process, called with its device.
Work = Callable[[str], Results]


def in_a_group(device: str, work: Work, processes: int = PROCESSES) -> Results:
    """Call ``work`` in new processes that form a process group. Return the results of all, named by process.

    Each process has its own device. Raises NotOffered if there are too few devices, if they have no process group, or
    if this torch or this machine cannot do the work on CPU: then there is nothing to compare with.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = results_of(device, _meet, [(work, device, rank, folder, processes) for rank in range(processes)])
        except RuntimeError as e:
            if device != "cpu":
                raise
            raise NotOffered(f"{processes} processes on CPU, for comparison: {e}") from e
    return {f"process {rank}: {name}": x for rank, results in enumerate(found) for name, x in results.items()}


def _meet(work: Work, device: str, rank: int, folder: str, processes: int) -> Results:
    """Join the process group of the device's default backend, do the work there, and return its results."""
    from torch import distributed as dist  # slow to import

    if not dist.is_available():
        raise NotOffered(f"torch {torch.__version__} is built without torch.distributed")
    place = _place(device, rank, processes)
    try:
        backend = dist.get_default_backend_for_device(place)
    except ValueError as e:
        raise NotOffered(str(e)) from None
    store = dist.FileStore(f"{folder}/store", processes)
    limit = timedelta(seconds=PATIENCE)
    dist.init_process_group(backend, store=store, rank=rank, world_size=processes, timeout=limit)
    results = work(place)
    leave_group()
    return results


def leave_group() -> None:
    """Destroy the process group, after gloo's threads have freed the tensors of its calls.

    In torch 2.6 a thread of gloo frees the tensors of a call just after the call has returned, and needs the GIL for
    that. Destroying the group holds the GIL while it waits for that thread, and never returns. In 2.8 it returns.
    """
    from torch import distributed as dist

    time.sleep(0.1)
    dist.destroy_process_group()


def _place(device: str, rank: int, processes: int) -> str:
    """Make this process's own device current, and return its name. Raises NotOffered if there are too few devices."""
    kind = torch.device(device).type
    if kind == "cpu":
        return device
    module = torch.get_device_module(kind)
    if module.device_count() < processes:
        raise NotOffered(f"a device for each of {processes} processes")
    module.set_device(rank)
    return f"{kind}:{rank}"


@scenario(exact=True, slow=True, area="distributed")
def collectives_of_two_processes(device: str) -> Results:
    """In a process group of two, with the device's default backend, collective calls give what CPU gives."""
    return in_a_group(device, _collectives)


@scenario(exact=True, slow=True, area="distributed")
def barriers_of_two_processes(device: str) -> Results:
    """``torch.distributed.barrier()`` holds a process until the other one is there, whichever of them is late."""
    with tempfile.TemporaryDirectory() as folder:
        return in_a_group(device, partial(_barriers, folder))


def _barriers(folder: str, _: str) -> Results:
    """Pass four barriers, one process late at each. Return for each whether the late process's work was done before."""
    from torch import distributed as dist

    waited = []
    for turn in range(2 * PROCESSES):
        done = Path(folder) / f"done_{turn}"
        if turn % PROCESSES == dist.get_rank():
            time.sleep(0.4)  # longer than a call that does not wait
            done.touch()
        try:
            dist.barrier()
        except RuntimeError as e:
            if any(words in str(e) for words in NOT_SUPPORTED):
                return {"waited": NotOffered(first_line(e))}
            raise
        waited.append(done.exists())
    return {"waited": torch.tensor(waited)}


def _collectives(device: str) -> Results:
    from torch import distributed as dist

    return {name: called(name, partial(call, dist), device) for name, call in COLLECTIVES.items()}


def called(name: str, call: Callable[[torch.Tensor], torch.Tensor], device: str) -> torch.Tensor | NotOffered:
    """Return the result of a call for this process's values, or NotOffered if the process group does not support it."""
    from torch import distributed as dist

    try:
        return call(torch.arange(4.0).add(10 * dist.get_rank()).to(device))
    except RuntimeError as e:
        lacking = (*NOT_SUPPORTED, NOT_STRIDED) if "strided" in name else NOT_SUPPORTED
        if not any(words in str(e) for words in lacking):
            raise RuntimeError(f"{name}: {first_line(e)}") from e
        return NotOffered(first_line(e))


def _reduced(dist: Any, x: torch.Tensor) -> torch.Tensor:
    y = x * 2  # submitted just before the call
    dist.all_reduce(y)
    return y + 1


def _reduced_at_an_offset(dist: Any, x: torch.Tensor) -> torch.Tensor:
    whole = torch.cat([x - 5, x, x + 5])
    dist.all_reduce(whole[4:8])
    return whole


def _reduced_integers(dist: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.to(torch.int64)
    dist.all_reduce(y, op=dist.ReduceOp.MAX)
    return y


def _reduced_later(dist: Any, x: torch.Tensor) -> torch.Tensor:
    work = dist.all_reduce(x, async_op=True)
    other = torch.ones_like(x) * 3  # while the call is in flight
    work.wait()
    return x + other


def _waited_for_again(start: Callable[[Any, torch.Tensor], tuple[torch.Tensor, Any]]) -> Collective:
    """Return a call that waits for its result, writes to the result, and then waits again."""

    def call(dist: Any, x: torch.Tensor) -> torch.Tensor:
        result, work = start(dist, x)
        work.wait()
        result.add_(1)
        work.wait()
        return result

    return call


def _two_in_flight(start: Callable[[Any, torch.Tensor], tuple[torch.Tensor, Any]]) -> Collective:
    """Return a call that starts a collective twice, with different values, before it waits for either."""

    def call(dist: Any, x: torch.Tensor) -> torch.Tensor:
        started = [start(dist, x + more) for more in (0, 100)]
        for _, work in reversed(started):
            work.wait()
        return torch.stack([result for result, _ in started])

    return call


def _reducing(dist: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    return x, dist.all_reduce(x, async_op=True)


def _broadcasting(dist: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    return x, dist.broadcast(x, src=1, async_op=True)


def _gathering(dist: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    output = x.new_zeros(PROCESSES * x.numel())
    return output, dist.all_gather_into_tensor(output, x, async_op=True)


def _exchanging(dist: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
    output = torch.zeros_like(x)
    return output, dist.all_to_all_single(output, x, async_op=True)


def _reduced_to_one(dist: Any, x: torch.Tensor) -> torch.Tensor:
    dist.reduce(x, dst=1)
    return x if dist.get_rank() == 1 else torch.zeros(1)  # the others' tensors are not defined


def _broadcast(dist: Any, x: torch.Tensor) -> torch.Tensor:
    part = x[1::2]
    dist.broadcast(x, src=1)
    return part.clone()


def _gathered(dist: Any, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x) for _ in range(PROCESSES)]
    dist.all_gather(outputs, x)
    return torch.stack(outputs)


def _gathered_in_one(dist: Any, x: torch.Tensor) -> torch.Tensor:
    output = x.new_zeros(PROCESSES * x.numel())
    dist.all_gather_into_tensor(output, x)
    return output


def _gathered_by_one(dist: Any, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x) for _ in range(PROCESSES)] if dist.get_rank() == 1 else None
    dist.gather(x, outputs, dst=1)
    return torch.stack(outputs) if outputs else torch.zeros(1)


def _scattered(dist: Any, x: torch.Tensor) -> torch.Tensor:
    output = torch.zeros_like(x)
    dist.scatter(output, [x * 2, x * 3] if dist.get_rank() == 0 else None, src=0)
    return output


def _strided(x: torch.Tensor) -> torch.Tensor:
    """Return as many zeros as ``x`` has elements, in every second element of a storage.

    They are dense on CPU: gloo treats strided tensors as dense ones.
    """
    return torch.zeros_like(x) if x.device.type == "cpu" else x.new_zeros(2 * x.numel())[::2]


def _scattered_to_strided(dist: Any, x: torch.Tensor) -> torch.Tensor:
    output = _strided(x)
    dist.scatter(output, [x * 2, x * 3] if dist.get_rank() == 0 else None, src=0)
    return output


def _reduced_strided(dist: Any, x: torch.Tensor) -> torch.Tensor:
    y = _strided(x).copy_(x)
    dist.all_reduce(y)
    return y


def _broadcast_to_strided(dist: Any, x: torch.Tensor) -> torch.Tensor:
    y = _strided(x).copy_(x)
    dist.broadcast(y, src=1)
    return y


def _gathered_in_strided(dist: Any, x: torch.Tensor) -> torch.Tensor:
    outputs = [_strided(x) for _ in range(PROCESSES)]
    dist.all_gather(outputs, x)
    return torch.stack(outputs)


def _scattered_sum(dist: Any, x: torch.Tensor) -> torch.Tensor:
    output = x.new_zeros(x.numel() // PROCESSES)
    dist.reduce_scatter_tensor(output, x)
    return output


def _exchanged(dist: Any, x: torch.Tensor) -> torch.Tensor:
    output = torch.zeros_like(x)
    dist.all_to_all_single(output, x)
    return output


def _exchanged_unevenly(dist: Any, x: torch.Tensor) -> torch.Tensor:
    sent, received = ([1, 3], [1, 2]) if dist.get_rank() == 0 else ([2, 2], [3, 2])
    output = x.new_zeros(sum(received))
    dist.all_to_all_single(output, x, received, sent)
    return output


def _sent_around(dist: Any, x: torch.Tensor) -> torch.Tensor:
    received = torch.zeros_like(x)
    if dist.get_rank() == 0:
        dist.send(x, dst=1)
        dist.recv(received, src=1)
    else:
        dist.recv(received, src=0)
        dist.send(received + x, dst=0)
    return received


def _sent_both_ways(dist: Any, x: torch.Tensor) -> torch.Tensor:
    received, other = torch.zeros_like(x), 1 - dist.get_rank()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, received, other)]):
        work.wait()
    return received


def _after_a_barrier(dist: Any, x: torch.Tensor) -> torch.Tensor:
    dist.barrier()
    return x


def _objects(dist: Any, x: torch.Tensor) -> torch.Tensor:
    found: list[Any] = [None] * PROCESSES
    dist.all_gather_object(found, {"process": dist.get_rank(), "values": x.tolist()})
    return torch.tensor([y for each in found for y in (each["process"], *each["values"])])


def _in_a_group_of_its_own(dist: Any, x: torch.Tensor) -> torch.Tensor:
    alone, both = [dist.new_group([i]) for i in range(PROCESSES)], dist.new_group(list(range(PROCESSES)))
    dist.all_reduce(x, group=alone[dist.get_rank()])
    dist.all_reduce(x, group=both)
    return x


COLLECTIVES: dict[str, Collective] = {
    "all_reduce": _reduced,
    "all_reduce, at an offset": _reduced_at_an_offset,
    "all_reduce, the largest": _reduced_integers,
    "all_reduce, waited for later": _reduced_later,
    "all_reduce, waited for twice": _waited_for_again(_reducing),
    "broadcast, waited for twice": _waited_for_again(_broadcasting),
    "all_gather_into_tensor, waited for twice": _waited_for_again(_gathering),
    "all_to_all_single, waited for twice": _waited_for_again(_exchanging),
    "all_reduce, two in flight": _two_in_flight(_reducing),
    "broadcast, two in flight": _two_in_flight(_broadcasting),
    "all_gather_into_tensor, two in flight": _two_in_flight(_gathering),
    "all_to_all_single, two in flight": _two_in_flight(_exchanging),
    "reduce": _reduced_to_one,
    "broadcast": _broadcast,
    "all_gather": _gathered,
    "all_gather_into_tensor": _gathered_in_one,
    "gather": _gathered_by_one,
    "scatter": _scattered,
    "scatter to strided": _scattered_to_strided,
    "all_reduce, strided": _reduced_strided,
    "broadcast to strided": _broadcast_to_strided,
    "all_gather to strided": _gathered_in_strided,
    "reduce_scatter_tensor": _scattered_sum,
    "all_to_all_single": _exchanged,
    "all_to_all_single, uneven": _exchanged_unevenly,
    "send and recv": _sent_around,
    "batch_isend_irecv": _sent_both_ways,
    "barrier": _after_a_barrier,
    "all_gather_object": _objects,
    "new_group": _in_a_group_of_its_own,
}
