"""The tools for programs of hazards: streams, events, tensors, and work that keeps a stream busy.

Only public names of torch are used. A program never depends on when work runs, so that a difference is a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from conformance.backends import Capabilities

#: Elements of each tensor. Small ones are enough where the backend delays work.
SMALL, LARGE = 1 << 6, 1 << 20
#: A matrix product that takes a device milliseconds.
MATRIX = 1536


@dataclass(frozen=True, slots=True)
class Difference:
    """A tensor that is not the result of the program's data flow."""

    what: str
    elements: int
    wrong: int
    first: int  # flat index, row-major
    got: float
    expected: float

    def text(self) -> str:
        return (
            f"{self.what}: {self.wrong} of {self.elements} elements are wrong; element {self.first} is {self.got:g}, "
            f"expected {self.expected:g}"
        )


@dataclass(slots=True)
class Bench:
    """One run of one program on a device. ``delayed``: whether the backend delays the work."""

    capabilities: Capabilities
    device: torch.device
    second: torch.device | None
    delayed: bool
    saves_by: str = ""  # how the running program saves values, in words; empty if it saves none
    _busy: list[torch.Tensor] = field(default_factory=list)

    @property
    def backend(self) -> str:
        """The backend as ``--backend`` takes it."""
        return self.capabilities.asked

    @property
    def elements(self) -> int:
        return SMALL if self.delayed else LARGE

    def full(self, value: float, device: torch.device | None = None) -> torch.Tensor:
        """Return a tensor on the device with the value in all elements, and wait for it."""
        tensor = torch.full((self.elements,), float(value), device=device or self.device)
        self.wait(device)
        return tensor

    def host(self, value: float, *, pinned: bool = False) -> torch.Tensor:
        return torch.full((self.elements,), float(value), pin_memory=pinned)

    def wait(self, device: torch.device | None = None) -> None:
        """Wait for all work of a device. If the device is not torch's accelerator, use the adapter's synchronize."""
        if self.capabilities.is_accelerator:
            torch.accelerator.synchronize(device or self.device)
        else:
            self.capabilities.synchronize()

    def step(self) -> None:
        """End the step of a backend that records work. Other backends wait for their work."""
        if not self.capabilities.mark_step():
            self.wait()

    def donate(self, tensor: torch.Tensor) -> None:
        """Let the end of the step take the memory of a tensor."""
        self.capabilities.donate(tensor)

    def stream(self, device: torch.device | None = None) -> torch.Stream:
        return torch.Stream(device or self.device)

    def current(self, device: torch.device | None = None) -> torch.Stream:
        return torch.accelerator.current_stream(device or self.device)

    def event(self) -> torch.Event:
        return torch.Event(self.device)

    @contextmanager
    def on(self, stream: torch.Stream) -> Iterator[None]:
        """Return a context manager in which work is submitted to a stream."""
        before_here = torch.accelerator.current_stream()
        before_there = torch.accelerator.current_stream(stream.device)
        torch.accelerator.set_stream(stream)
        try:
            yield
        finally:
            torch.accelerator.set_stream(before_there)
            torch.accelerator.set_stream(before_here)

    def busy(self, device: torch.device | None = None) -> None:
        """Submit work to the current stream that takes some time and touches no tensor of the program."""
        where = device or self.device
        side = 4 if self.delayed else MATRIX
        matrix = torch.zeros(side, side, device=where)
        for _ in range(4):
            matrix = matrix @ matrix
            self._busy.append(matrix)  # so that it is not freed, and nothing waits for it

    def next_users(self) -> list[torch.Tensor]:
        """Return tensors of nines that the current stream fills, with as much memory as the program may have freed."""
        return [torch.full((self.elements,), 9.0, device=self.device) for _ in range(16)]

    def overwrite_free_memory(self) -> None:
        """Allocate as much memory as the program may have freed, on an idle stream, and write over it."""
        with self.on(self.stream()):
            self._busy.extend(self.next_users())

    def users_of(self, where: int) -> list[torch.Tensor]:
        """Return tensors of nines. The last one is at the address ``where``, if any new tensor is placed there."""
        most = max(64, (1 << 16) // self.elements)
        tensors = [self.full(9)]
        while tensors[-1].data_ptr() != where and len(tensors) < most:
            tensors.append(self.full(9))
        return tensors

    def until(self, done: Callable[[], bool]) -> None:
        """Call ``done`` until it returns True."""
        while not done():
            pass


def difference(what: str, got: torch.Tensor, expected: float | torch.Tensor) -> Difference | None:
    """Return the difference of ``got`` from a value or tensor, None if there is none. Waits for the tensor's stream."""
    found = got.detach().cpu()
    wanted = expected if isinstance(expected, torch.Tensor) else torch.full_like(found, expected)
    wrong = (found != wanted).reshape(-1).nonzero().reshape(-1)
    if wrong.numel() == 0:
        return None
    first = int(wrong[0])
    return Difference(
        what, found.numel(), wrong.numel(), first, float(found.reshape(-1)[first]), float(wanted.reshape(-1)[first])
    )
