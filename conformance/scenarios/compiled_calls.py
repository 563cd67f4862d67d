"""Calls of compiled functions: the stream they run in, the host values they read, and the function that runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.scenarios.busy_streams import busy_stream, synchronize
from conformance.scenarios.compiling import by_inductor
from conformance.scenarios.model import NotOffered, Results, scenario

TURNS = 4
SIZE = 4096  # elements
SIDE = 32  # rows and columns of a matrix
#: Sizes of a function's argument in successive calls.
ROWS_AND_COLUMNS = ((5, 35), (5, 18), (9, 70), (2, 3), (67, 129), (9, 70))
#: Compiles a function. On CPU it returns the function itself, which gives the expected results.
Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]


def _calls(what: str, device: str, made: Callable[[Compiler], torch.Tensor], *, dynamic: bool | None = None) -> Results:
    """Return the results of calls of compiled functions; on CPU those of functions that are not compiled."""
    if torch.device(device).type == "cpu":
        return {"compiled": made(lambda function: function)}
    found: torch.Tensor | NotOffered = by_inductor(what, device, lambda: made(partial(torch.compile, dynamic=dynamic)))
    return {"compiled": found}


@scenario(exact=True, slow=True, compiles=True)
def on_a_stream(device: str) -> Results:
    """A compiled function runs in the current stream, behind what that has to do."""

    def made(compiled: Compiler) -> torch.Tensor:
        function = compiled(lambda x: x * 3 + 1)
        function(torch.ones(SIZE, device=device))
        found = []
        for value in range(TURNS):
            with busy_stream(device):
                x = torch.full((SIZE,), float(value), device=device)
                one = function(x)
            synchronize(device)
            found.append(one.cpu())
        return torch.stack(found)

    return _calls("a function of a tensor", device, made)


@scenario(exact=True, slow=True, compiles=True)
def on_the_device_of_its_arguments(device: str) -> Results:
    """A compiled function computes on the device of its arguments, and gives its result there, whichever is current."""

    def made(compiled: Compiler) -> torch.Tensor:
        function = compiled(lambda x: (x * 2) @ x.t() + 1)
        found = []
        for index in (1, 0, 1):
            where = torch.device(device if device == "cpu" else f"{torch.device(device).type}:{index}")
            x = torch.arange(SIDE * SIDE, dtype=torch.float32).remainder_(5 + index).view(SIDE, SIDE)
            one = function(x.to(where))
            found += [one.cpu(), torch.full((SIDE, SIDE), float(one.device == where))]
        return torch.stack(found)

    if device != "cpu" and torch.get_device_module(device).device_count() < 2:
        raise NotOffered("a second device")
    return _calls("a function of a tensor of any device", device, made)


@scenario(exact=True, slow=True, compiles=True)
def of_any_size(device: str) -> Results:
    """A function that was compiled for any size computes all elements of smaller and of larger arguments."""

    def made(compiled: Compiler) -> torch.Tensor:
        function, found = compiled(lambda x: (x * 3 + 1, (x + x.flip(1)).sum(0))), []
        for rows, columns in ROWS_AND_COLUMNS:
            x = torch.arange(rows * columns, dtype=torch.float32).remainder_(7).view(rows, columns)
            found += [one.cpu().view(-1) for one in function(x.to(device))]
        return torch.cat(found)

    return _calls("a function of a tensor of any size", device, made, dynamic=True)


@scenario(exact=True, slow=True, compiles=True)
def scalars_of_the_host(device: str) -> Results:
    """A compiled function reads a scalar of the host when it is called, whatever the host writes afterwards."""

    def made(compiled: Compiler) -> torch.Tensor:
        function = compiled(lambda x, scalar: x * scalar + 1)
        x, found = torch.arange(float(SIZE), device=device), []
        function(x, torch.tensor(2.0))
        for value in range(TURNS):
            scalar = torch.tensor(float(value))
            with busy_stream(device):
                one = function(x, scalar)
                scalar.fill_(-1)
            synchronize(device)
            found.append(one.cpu())
        return torch.stack(found)

    return _calls("a function of a tensor and a scalar of the host", device, made)


@scenario(exact=True, slow=True, compiles=True)
def functions_alike(device: str) -> Results:
    """Functions of the same ops with other constants are compiled each for itself, though their kernels share names."""

    def made(compiled: Compiler) -> torch.Tensor:
        x = torch.arange(float(SIZE), device=device)
        functions = [compiled(lambda x: x * 2 + 1), compiled(lambda x: x * 4 + 3), compiled(lambda x: x * 8 + 5)]
        found = [function(x) for _ in range(2) for function in functions]
        return torch.stack([one.cpu() for one in found])

    return _calls("functions of the same ops", device, made)
