"""Distributed checkpoints, and collective calls in a group of one process."""

from __future__ import annotations

import gc
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import module_of, named
from conformance.scenarios.busy_streams import busy_stream, synchronize
from conformance.scenarios.groups import leave_group
from conformance.scenarios.model import NotOffered, Results, first_line, offered, scenario, unless_first


def _state(device: str, *, zeros: bool = False) -> dict[str, Any]:
    """Return tensors of several layouts in nested dicts."""
    base = torch.arange(24.0)
    values = (torch.zeros_like(base) if zeros else base).to(device)
    return {
        "dense": values.clone(),
        "transposed": values.clone().view(4, 6).t(),
        "part": values.clone()[3::4],
        "nested": {"integers": values.to(torch.int64), "halves": values.bfloat16(), "number": values[7].clone()},
        "step": 0 if zeros else 12,
    }


def _through_a_checkpoint(saved: dict[str, Any], loaded: dict[str, Any]) -> Results:
    """Save one state and load it into another. Return the loaded values, and whether each has kept its device."""
    from torch.distributed import checkpoint  # slow to import

    place = loaded["dense"].device
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a checkpoint of one process
        try:
            checkpoint.save(saved, checkpoint_id=folder)
            checkpoint.load(loaded, checkpoint_id=folder)
        except checkpoint.CheckpointException as e:  # not an Exception, and it hides the original error
            (cause, _), *_ = e.failures.values()
            lacks = isinstance(cause, (AttributeError, NotImplementedError))  # a function of the module is missing
            raise (NotOffered if lacks else RuntimeError)(first_line(cause)) from cause
    tensors = {**{n: t for n, t in loaded.items() if n not in ("nested", "step")}, **loaded["nested"]}
    results: Results = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    places = torch.tensor([tensor.device == place for tensor in tensors.values()])
    return {**results, "places": places, "step": torch.tensor(loaded["step"])}


@scenario(exact=True, slow=True, area="distributed")
def checkpoints(device: str) -> Results:
    """``torch.distributed.checkpoint`` loads a state into tensors of the device, and keeps their strides."""
    return _through_a_checkpoint(_state(device), _state(device, zeros=True))


@scenario(exact=True, slow=True, area="distributed")
def checkpoints_elsewhere(device: str) -> Results:
    """A checkpoint of tensors of the device is loaded on CPU, and one of CPU tensors on the device."""
    there = _through_a_checkpoint(_state(device), _state("cpu", zeros=True))
    here = _through_a_checkpoint(_state("cpu"), _state(device, zeros=True))
    return {**{f"on CPU: {n}": t for n, t in there.items()}, **{f"on the device: {n}": t for n, t in here.items()}}


@contextmanager
def _group_of_one(device: str) -> Iterator[Any]:
    """Form a process group of this process alone with the device's default backend. Yield ``torch.distributed``."""
    from torch import distributed as dist  # slow to import

    if not dist.is_available():
        raise NotOffered(f"torch {torch.__version__} is built without torch.distributed")
    try:
        backend = dist.get_default_backend_for_device(device)
    except ValueError as e:
        raise NotOffered(str(e)) from None
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist
    finally:
        leave_group()


@scenario(exact=True, slow=True, area="distributed")
def collectives_of_one_process(device: str) -> Results:
    """In a process group of one, with the device's default backend, collective calls give what CPU gives."""
    with _group_of_one(device) as dist:
        return {name: call(dist, torch.arange(6.0).to(device)).cpu() for name, call in IN_A_GROUP_OF_ONE.items()}


@scenario(exact=True, slow=True, area="distributed")
def collectives_on_a_stream(device: str) -> Results:
    """Collective calls read what the current stream writes, and their results are there behind it."""

    def called(dist: Any, call: Callable[[Any, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        with busy_stream(device):
            found = call(dist, torch.arange(6.0).to(device) + 1)
        synchronize(device)
        return found.cpu()

    with _group_of_one(device) as dist:
        return {name: offered(partial(called, dist, call)) for name, call in IN_A_GROUP_OF_ONE.items()}


@scenario(exact=True, slow=True, area="distributed", accelerators=True)
def collectives_keep_no_memory(device: str) -> Results:
    """A collective call keeps none of its tensors once its handle is gone."""
    if device == "cpu":
        return dict.fromkeys(IN_A_GROUP_OF_ONE, torch.tensor(True))
    allocated = partial(named(module_of(device), "memory_allocated"), *unless_first(device))

    def held_behind(dist: Any, call: Callable[[Any, torch.Tensor], torch.Tensor]) -> object:
        call(dist, torch.arange(6.0).to(device)).cpu()
        gc.collect()
        return allocated()

    def keeps_none(dist: Any, call: Callable[[Any, torch.Tensor], torch.Tensor]) -> torch.Tensor:
        first = held_behind(dist, call)  # the first call may keep a workspace
        return torch.tensor(all(held_behind(dist, call) == first for _ in range(3)))

    with _group_of_one(device) as dist:
        return {name: offered(partial(keeps_none, dist, call)) for name, call in IN_A_GROUP_OF_ONE.items()}


def _reduced(dist: Any, x: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(x)
    return x


def _broadcast(dist: Any, x: torch.Tensor) -> torch.Tensor:
    part = x[1::2]  # a view, which must see the write in place
    dist.broadcast(x, src=0)
    return part.clone()


def _gathered(dist: Any, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x)]
    dist.all_gather(outputs, x)
    return outputs[0]


def _gathered_by_one(dist: Any, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x)]
    dist.gather(x, outputs, dst=0)
    return outputs[0]


def _reduced_later(dist: Any, x: torch.Tensor) -> torch.Tensor:
    work = dist.all_reduce(x.mul_(2), async_op=True)
    work.wait()
    return x + 1


IN_A_GROUP_OF_ONE: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "all_reduce": _reduced,
    "broadcast": _broadcast,
    "all_gather": _gathered,
    "gather": _gathered_by_one,
    "all_reduce, not waited for": _reduced_later,
}
