"""Transfers of data to a device: pinned memory, copies that do not block, and ``torch.utils.data.DataLoader``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.utils.data import DataLoader, TensorDataset

from conformance.scenarios.asking import accelerator, held
from conformance.scenarios.busy_streams import pinned
from conformance.scenarios.model import Results, on, scenario
from conformance.scenarios.new_processes import results_of

#: Sizes in bytes just below and above those at which an allocator may change its strategy.
SIZES = tuple(edge + more for edge in (4 << 10, 64 << 10, 1 << 20, 4 << 20) for more in (-64, 64))


@scenario(exact=True, area="loading", accelerators=True)
def pinned_memory(device: str) -> Results:
    """A pinned tensor says so and keeps its values, also one that is allocated with ``pin_memory=True``."""
    tensor = pinned(device, torch.arange(100.0))
    empty = torch.zeros(5, pin_memory=device != "cpu")
    of_sizes = {size: pinned(device, (torch.arange(size) % 251).to(torch.uint8)) for size in SIZES}
    return {
        **{f"{size}_bytes": on(device, p) for size, p in of_sizes.items()},
        **{f"{size}_pinned": torch.tensor(device == "cpu" or p.is_pinned()) for size, p in of_sizes.items()},
        "values": tensor.clone(),
        "pinned": torch.tensor(device == "cpu" or tensor.is_pinned()),
        "allocated": torch.tensor(device == "cpu" or empty.is_pinned()),
        "others_are_not": torch.tensor(torch.ones(3).is_pinned()),
    }


@scenario(exact=True, area="loading", accelerators=True)
def what_is_pinned(device: str) -> Results:
    """Views, handles and arrays of pinned memory are pinned. What is computed or copied of it is not."""
    made = partial(pinned, device)

    def on_device() -> torch.Tensor:
        return torch.ones(4096, device=device)

    pins: dict[str, Callable[[], torch.Tensor]] = {
        "view": lambda: made(torch.ones(4096))[7:9],
        "last": lambda: made(torch.ones(4096))[-1],
        "detached": lambda: made(torch.ones(4096)).detach(),
        "array": lambda: torch.from_numpy(made(torch.ones(4096)).numpy()[7:]),
        "of_a_view": lambda: made(torch.arange(100.0).view(10, 10).t()),
        "like_device": lambda: torch.empty_like(on_device(), device="cpu", pin_memory=True),
        "new": lambda: torch.ones(3).new_empty(5, pin_memory=True),
        "parameter": lambda: made(torch.nn.Parameter(torch.ones(3))),
    }
    does_not: dict[str, Callable[[], torch.Tensor]] = {
        "clone": lambda: made(torch.ones(4096)).clone(),
        "sum": lambda: made(torch.ones(4096)) + 1,
        "on_device": on_device,
        "from_device": lambda: on_device().cpu(),
        "sent": lambda: made(torch.ones(4096)).to(device),
    }

    def is_pinned(made: Callable[[], torch.Tensor]) -> bool:
        accelerator(device)  # torch pins memory for its accelerator only
        return bool(made().is_pinned())

    refused: dict[str, Callable[[], torch.Tensor]] = {
        "tensor_of_device": lambda: on_device().pin_memory(),
        "made_on_device": lambda: torch.empty(2, device=device, pin_memory=True),
        "made_strided_on_device": lambda: torch.empty_strided((2,), (3,), device=device, pin_memory=True),
    }

    def is_refused(pins: Callable[[], torch.Tensor]) -> bool:
        accelerator(device)
        try:
            pins()
        except RuntimeError:
            return True
        return False

    return held(device, {
        **{name: partial(is_pinned, made) for name, made in pins.items()},
        **{f"not_{name}": partial(lambda made: not is_pinned(made), made) for name, made in does_not.items()},
        **{f"{name}_is_refused": partial(is_refused, pins) for name, pins in refused.items()},
    })  # fmt: skip


@scenario(exact=True, slow=True, area="loading")
def pinned_before_the_first_use(device: str) -> Results:
    """A process that pins memory before it uses the device has pinned memory, whose copies arrive."""
    (found,) = results_of(device, _pinned_first, [(device,)])
    return found


def _pinned_first(device: str) -> Results:
    """Pin memory in this new process before anything else."""
    made, empty = pinned(device, torch.arange(100.0)), torch.zeros(5, pin_memory=device != "cpu")
    both = {"made": made, "allocated": empty}
    return {
        **{name: torch.tensor(device == "cpu" or one.is_pinned()) for name, one in both.items()},
        "values": made.clone(),
        "arrived": made.to(device, non_blocking=True) + 1,
    }


@scenario(exact=True, area="loading")
def copies_that_do_not_block(device: str) -> Results:
    """``non_blocking=True`` copies to the device and back give the values that a wait for the device shows."""
    source = pinned(device, torch.arange(10_000.0))
    there = source.to(device, non_blocking=True) * 2
    back = pinned(device, torch.zeros(10_000))
    back.copy_(there, non_blocking=True)
    strided = there[::3].to("cpu", non_blocking=True)
    there.sum().item()  # waits for the stream
    return {"there": there.cpu(), "back": back.clone(), "strided": strided.contiguous()}


#: Views of a matrix of 100 x 101 elements.
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "behind_an_offset": lambda t: t[40:],
    "of_one_row": lambda t: t[7],
    "of_columns": lambda t: t[:, 3:90],
    "of_every_second": lambda t: t[::2, ::2],
    "transposed": lambda t: t.t(),
    "of_one_element": lambda t: t[99, 100],
}


@scenario(exact=True, area="loading")
def views_of_pinned_memory(device: str) -> Results:
    """Copies that do not block, from views of pinned memory and to them, reach their elements and no others."""
    results: Results = {}
    for dtype in (torch.float32, torch.uint8):
        numbers = (torch.arange(100 * 101) % 251).view(100, 101).to(dtype)
        on_device = on(device, numbers)
        for name, view in VIEWS.items():
            there = view(pinned(device, numbers.clone())).to(device, non_blocking=True)
            kept = pinned(device, torch.zeros(100, 101, dtype=dtype))
            view(kept).copy_(view(on_device), non_blocking=True)
            there.sum().item()  # waits for the stream
            results[f"from.{name}.{dtype}"] = there.clone(memory_format=torch.contiguous_format)
            results[f"to.{name}.{dtype}"] = kept.clone()
    return results


def _batches(device: str, **how: object) -> torch.Tensor:
    """Return the sums of the batches of a loader, computed on the device."""
    data = TensorDataset(torch.arange(40.0).view(20, 2), torch.arange(20))
    loader: DataLoader[tuple[torch.Tensor, ...]] = DataLoader(data, batch_size=6, **how)
    return torch.stack([(x.to(device).sum() + y.to(device).sum()).cpu() for x, y in loader])


@scenario(exact=True, area="loading")
def loaders(device: str) -> Results:
    """A ``DataLoader`` gives batches in this process, shuffled by a seed, and from pinned memory."""
    return {
        "plain": _batches(device),
        "shuffled": _batches(device, shuffle=True, generator=torch.Generator().manual_seed(5)),
        "pinned": _batches(device, pin_memory=device != "cpu"),
    }


@scenario(exact=True, slow=True, area="loading")
def workers(device: str) -> Results:
    """A ``DataLoader`` with two worker processes gives the batches in order, whatever the parent did on the device."""
    torch.ones(3, device=device).sum().item()
    return {"batches": _batches(device, num_workers=2)}
