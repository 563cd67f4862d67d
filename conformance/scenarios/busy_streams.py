"""Streams that are busy while a program tries what goes wrong if the device forgets that.

On CPU the same calls run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch

from conformance.scenarios.asking import accelerator, current
from conformance.scenarios.model import NotOffered, Results, first_line, offered

SIZE = 4096  # elements of a tensor
ROUNDS = 4  # of a part that depends on who comes first
CALLS = 40  # that keep a stream busy
TAKEN = 16  # tensors that would get memory which is given back too early
#: What c10 says of a device that has no streams, or no events.
LACKING = "doesn't support"

Part = Callable[[str], torch.Tensor]
Result = TypeVar("Result")


def results_of_parts(device: str, *parts: Part) -> Results:
    """Return the tensor of each part, by its name."""
    return {part.__name__.strip("_"): offered(partial(with_streams, part, device)) for part in parts}


def with_streams(part: Callable[[str], Result], device: str) -> Result:
    """Return the result of a part. Raises NotOffered if the device has no streams, or no events."""
    try:
        return part(device)
    except RuntimeError as e:
        if LACKING in str(e):
            raise NotOffered(first_line(e)) from e
        raise


def new_stream(device: str) -> torch.Stream | None:
    """Return a new stream, None on CPU. Raises NotOffered."""
    if device == "cpu":
        return None
    accelerator(device)
    return torch.Stream(device)


@contextmanager
def on_stream(stream: torch.Stream | None) -> Iterator[None]:
    """Make a stream the current one, behind what the current one has to do."""
    if stream is None:
        yield
        return
    stream.wait_stream(torch.accelerator.current_stream(stream.device))
    with current(stream):
        yield


@contextmanager
def busy_stream(device: str, calls: int = CALLS) -> Iterator[torch.Stream | None]:
    """Make a new stream the current one, and give it some work before what is called. Raises NotOffered."""
    stream = new_stream(device)
    with on_stream(stream):
        keep_busy(device, calls)
        yield stream


def synchronize(device: str) -> None:
    """Wait for all work of the device. Raises NotOffered."""
    if device != "cpu":
        accelerator(device)
        torch.accelerator.synchronize(device)


def filled(device: str, value: float, size: int = SIZE) -> torch.Tensor:
    """Return a tensor of equal numbers."""
    return torch.full((size,), value, device=device)


def keep_busy(device: str, calls: int = CALLS) -> None:
    """Give the current stream some work."""
    x = filled(device, 1.0)
    for _ in range(calls):
        x.mul_(2).div_(2)


def take_memory(device: str) -> list[torch.Tensor]:
    """Return new tensors, which overwrite memory that is free."""
    return [filled(device, -1.0) for _ in range(TAKEN)]


def overwrite_free_memory(device: str) -> None:
    """Fill memory that is free now, and wait for the device."""
    taken = take_memory(device)
    synchronize(device)
    del taken


def pinned(device: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in pinned memory, on CPU in any memory. Raises NotOffered."""
    if device == "cpu":
        return tensor.clone()
    accelerator(device)  # torch pins memory for its accelerator alone
    return tensor.pin_memory()


def in_rounds(part: Callable[[str, float], torch.Tensor], device: str) -> torch.Tensor:
    """Return what a part gives for several values, on the host."""
    return torch.stack([part(device, float(i)).cpu() for i in range(ROUNDS)])
