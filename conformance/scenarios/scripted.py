"""TorchScript: functions and modules that are traced or scripted on the device, saved, and loaded elsewhere."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from conformance.scenarios.model import Results, offered, on, scenario

_X = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])


class _Model(nn.Module):
    """A module with parameters, a buffer, a constant that is made in a call, and a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 0.5]))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) / 4 - 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(x.size(1)):
            x = torch.relu(self.layer(x)) * self.scale + torch.ones(3, device=x.device) * i
        return x


def _traced(device: str) -> Any:
    return torch.jit.trace(_Model().to(device), on(device, _X), check_trace=False)


def _scripted(device: str) -> Any:
    return torch.jit.script(_Model().to(device))


def _reloaded(made: Any, device: str) -> Any:
    file = io.BytesIO()
    torch.jit.save(made, file)
    file.seek(0)
    return torch.jit.load(file, map_location=device)


def result_of(module: Any, device: str) -> torch.Tensor:
    """Return the results of three calls of a module, and the gradients of its argument. torch optimizes later calls.

    Raises AssertionError if the result or a part of the module is on another device.
    """
    rows = []
    for _ in range(3):
        x = on(device, _X.clone()).requires_grad_()
        result = module(x)
        result.square().sum().backward()
        elsewhere = {str(t.device) for t in (result, *module.parameters(), *module.buffers()) if t.device != x.device}
        if elsewhere:
            raise AssertionError(f"a part is on {sorted(elsewhere)}, not on {x.device}")
        rows += [result.detach().flatten(), x.grad.flatten()]
    return torch.cat(rows)


#: Ways to make a module, which is made for a device and computes there. If a module is traced or frozen, and is called
#: without being saved, torch keeps its constants until the process ends, which would count as a leak.
MADE: dict[str, Callable[[str], Any]] = {
    "scripted": _scripted,
    "traced_and_saved": lambda device: _reloaded(_traced(device), device),
    "scripted_and_saved": lambda device: _reloaded(_scripted(device), device),
    "saved_on_the_host": lambda device: _reloaded(_scripted("cpu"), device),
    "moved": lambda device: _scripted("cpu").to(device),
    "copied": lambda device: copy.deepcopy(_scripted(device)),
}


@scenario(area="export", slow=True)
def modules(device: str) -> Results:
    """A traced or scripted module computes on the device as on CPU, also after it was saved, loaded or moved."""

    def computed(make: Callable[[str], Any]) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that TorchScript is deprecated
            return result_of(make(device), device)

    results = {name: offered(partial(computed, make)) for name, make in MADE.items()}
    return results | {"loaded_on_the_host": offered(partial(_brought_to_the_host, device))}


def _brought_to_the_host(device: str) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result_of(_reloaded(_scripted(device), "cpu"), "cpu")
