"""Models with a part on another device, and gradients that reach a tensor from several devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

from conformance.scenarios.asking import another
from conformance.scenarios.busy_streams import SIZE, busy_stream, synchronize, with_streams
from conformance.scenarios.model import Results, offered, scenario

#: Factors of the biases of the two layers in each step. An infinity makes a gradient infinite.
FACTORS = ((1.0, 1.0), (1.0, torch.inf), (torch.inf, 1.0), (1.0, 1.0))

#: Returns a result for a device and another one. The third argument: whether their streams are busy.
Program = Callable[[str, str, bool], torch.Tensor]


@scenario(area="training")
def model_over_two_devices(device: str) -> Results:
    """A step of a model of which a part is on another device is the step with all of it on one."""
    return _idle_and_busy(device, {
        "plain": partial(_clipped_steps, foreach=False), "foreach": partial(_clipped_steps, foreach=True),
        "scaled": _scaled_steps,
    })  # fmt: skip


@scenario(area="training")
def gradients_of_several_devices(device: str) -> Results:
    """The gradients of a tensor that reach it from its device, from another one and from the host add up."""
    return _idle_and_busy(device, {"joined": _joined})


def _idle_and_busy(device: str, programs: dict[str, Program]) -> Results:
    """Return the results of programs for two devices, with idle streams and with busy ones."""

    def result(program: Program, busy: bool, device: str) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about gradients on another stream than their leaf's
            return program(device, another(device), busy)

    return {
        f"{name}_{'busy' if busy else 'idle'}": offered(partial(with_streams, partial(result, program, busy), device))
        for name, program in programs.items()
        for busy in (False, True)
    }


@contextmanager
def _streams(device: str, second: str, busy: bool) -> Iterator[None]:
    """If ``busy``, make new streams of both devices current, with some work. Wait for both devices at the end."""
    if not busy:
        yield
        return
    with busy_stream(device), busy_stream(second):
        yield
    for each in (device, second):
        synchronize(each)


class _Model(nn.Module):
    """A model of two layers on two devices. The loss uses both, and the first one twice."""

    def __init__(self, device: str, second: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.second = second
        self.here, self.there = nn.Linear(6, 8).to(device), nn.Linear(8, 8).to(second)

    def forward(self, x: torch.Tensor, factors: tuple[float, float]) -> torch.Tensor:
        inner = torch.relu(self.there(torch.relu(self.here(x)).to(self.second)))
        of_biases = (self.there.bias * factors[1]).abs().sum().to(x.device) + (self.here.bias * factors[0]).abs().sum()
        return (inner.to(x.device) * self.here(x)).sum() + inner.square().mean().to(x.device) + of_biases

    def state(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Return the parameters, the gradient of the input, and whether each gradient is on its parameter's device."""
        tensors = [x, *self.parameters()]
        places = [t.grad is not None and t.grad.device == t.device for t in tensors]
        gradient = torch.zeros(()) if x.grad is None else x.grad
        return [*(t.detach() for t in self.parameters()), gradient, torch.tensor(places)]


def _joined_on_host(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([t.detach().cpu().flatten().float() for t in tensors])


def _input(device: str) -> torch.Tensor:
    return (torch.arange(24.0).view(4, 6) / 24).to(device).requires_grad_()


def _clipped_steps(device: str, second: str, busy: bool, *, foreach: bool) -> torch.Tensor:
    """Return the losses and norms of steps with clipped gradients, and the state of the model after them.

    ``foreach``: whether optimizer and clipping take lists of parameters, or one parameter after the other.
    """
    model, x, found = _Model(device, second), _input(device), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, foreach=foreach)
    for _ in FACTORS:
        optimizer.zero_grad()
        with _streams(device, second, busy):
            loss = model(x, (1.0, 1.0))
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=foreach or None)
            optimizer.step()
        found += [loss, norm]
    return _joined_on_host([*found, *model.state(x)])


def _scaled_steps(device: str, second: str, busy: bool) -> torch.Tensor:
    """Return the losses and scales of steps with scaled gradients, and the state of the model after them.

    The gradients are infinite in one step on one device, and in the next step on the other.
    """
    model, x, found = _Model(device, second), _input(device), []
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=8.0, growth_interval=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for factors in FACTORS:
        optimizer.zero_grad()
        with _streams(device, second, busy):
            loss = model(x, factors)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        found += [loss, torch.tensor(scaler.get_scale())]
    return _joined_on_host([*found, *model.state(x)])


def _joined(device: str, second: str, busy: bool) -> torch.Tensor:
    """Return the gradient of a leaf that is used on its device, on another one, and on the host."""
    leaf = torch.arange(float(SIZE), device=device).requires_grad_()
    with _streams(device, second, busy):
        there, host = leaf.to(second), leaf.cpu()
        total = (there * 2).sum().to(device) + (leaf * 3).sum() + (host * 4).sum().to(device)
        (total + (leaf.to(second) ** 2).sum().cpu().to(device)).backward()
        assert leaf.grad is not None
        return leaf.grad + 0
