"""Streams that are busy while a program makes calls that go wrong if the device forgets the pending work.

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
ROUNDS = 4  # rounds of a part whose result may depend on timing
CALLS = 40  # calls that keep a stream busy
TAKEN = 16  # tensors that reuse memory if it is freed too early
#: Part of c10's message for a device without streams or events.
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
    """Return a new stream, None on CPU. Raises NotOffered if the device is not torch's accelerator."""
    if device == "cpu":
        return None
    accelerator(device)
    return torch.Stream(device)


@contextmanager
def on_stream(stream: torch.Stream | None) -> Iterator[None]:
    """Make a stream the current one, after it has been made to wait for the previous current stream."""
    if stream is None:
        yield
        return
    stream.wait_stream(torch.accelerator.current_stream(stream.device))
    with current(stream):
        yield


@contextmanager
def busy_stream(device: str, calls: int = CALLS) -> Iterator[torch.Stream | None]:
    """Make a new stream the current one, and give it some work first. Raises NotOffered."""
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
    """Return new tensors, which overwrite free memory."""
    return [filled(device, -1.0) for _ in range(TAKEN)]


def overwrite_free_memory(device: str) -> None:
    """Overwrite memory that is free now, and wait for the device."""
    taken = take_memory(device)
    synchronize(device)
    del taken


def pinned(device: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in pinned memory, on CPU in ordinary memory. Raises NotOffered."""
    if device == "cpu":
        return tensor.clone()
    accelerator(device)  # torch pins memory for its accelerator only
    return tensor.pin_memory()


def in_rounds(part: Callable[[str, float], torch.Tensor], device: str) -> torch.Tensor:
    """Return the results of a part for several values, stacked on the host."""
    return torch.stack([part(device, float(i)).cpu() for i in range(ROUNDS)])
