"""A program of two processes in a process group of the device, which prints the results of both as JSON."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import refnpu.testing  # registers the device
import torch
import torch.distributed as dist
import torch.multiprocessing

Found = list[float] | str
CALLS: dict[str, Callable[[int], Found]] = {}


def call(run: Callable[[int], Found]) -> Callable[[int], Found]:
    """Register a function that both processes call with their rank."""
    CALLS[run.__name__] = run
    return run


def tensor(rank: int, device: str = "npu") -> torch.Tensor:
    """Return [1, 2] in the first process, and [10, 20] in the second."""
    return torch.tensor([1.0, 2.0]).mul(10**rank).to(device)


@call
def sum_on_the_device(rank: int) -> Found:
    x = tensor(rank)
    dist.all_reduce(x)
    return [*x.tolist(), x.device.index]


@call
def sum_on_the_cpu(rank: int) -> Found:
    x = tensor(rank, "cpu")
    dist.all_reduce(x)
    return x.tolist()


@call
def sum_of_every_second(rank: int) -> Found:
    x = torch.stack([tensor(rank), torch.zeros(2, device="npu")], 1)
    dist.all_reduce(x[:, 0])
    return x.flatten().tolist()


@call
def sum_of_late_work(rank: int) -> Found:
    with refnpu.testing.late("20000"):
        x = tensor(rank) * 2
        dist.all_reduce(x)
        y = x + 1
        return y.tolist()


@call
def sum_seen_on_another_stream(rank: int) -> Found:
    x, stream = tensor(rank), torch.Stream(device="npu")
    with refnpu.testing.late("20000"):
        work = dist.all_reduce(x, async_op=True)
        with torch.npu.stream(stream):
            work.wait()
            y = x + 1
            return y.tolist()


@call
def before_and_after_the_wait(rank: int) -> Found:
    x = tensor(rank)
    work = dist.all_reduce(x, async_op=True)
    before = x.tolist()
    work.wait()
    return [*before, *x.tolist()]


@call
def completed_without_a_wait(rank: int) -> Found:
    x = tensor(rank)
    work = dist.all_reduce(x, async_op=True)
    while not work.is_completed():
        pass
    return x.tolist()


@call
def value_of_the_future(rank: int) -> Found:
    x = tensor(rank)
    future = dist.all_reduce(x, async_op=True).get_future()
    return [float(future.done()), *future.value()[0].tolist()]


@call
def batch_of_calls(rank: int) -> Found:
    x = tensor(rank)
    with dist._coalescing_manager(device=x.device):
        dist.all_reduce(x)
    return x.tolist()


def _found(run: Callable[[int], Found], rank: int) -> Found:
    try:
        return run(rank)
    except Exception as e:  # noqa: BLE001  # what is refused is a result too
        return f"{type(e).__name__}: {e}"


def process(rank: int, folder: str) -> None:
    """Call each function in a process group, and write the results."""
    torch.set_num_threads(1)
    torch.npu.set_device(rank)
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group(store=store, rank=rank, world_size=2, timeout=timedelta(seconds=600))
    found = {name: _found(run, rank) for name, run in CALLS.items()}
    time.sleep(0.1)  # in torch 2.6, gloo's threads may still need the GIL, which the next call holds
    dist.destroy_process_group()
    Path(folder, str(rank)).write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    """Print the results of both processes as the last line. Old versions of gloo print other lines before it."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(process, args=(folder,), nprocs=2)
        found = [json.loads(Path(folder, str(rank)).read_text(encoding="utf-8")) for rank in range(2)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
