"""Settings that a call takes from torch's state and not from an argument: the default dtype and the default device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, holds, offered, on, scenario

Made = Callable[[str], torch.Tensor]

#: Calls without a dtype, whose results have the default dtype.
CALLS: dict[str, Made] = {
    "empty": lambda d: torch.empty(2, device=d).fill_(1),
    "empty_strided": lambda d: torch.empty_strided((2,), (3,), device=d).fill_(1),
    "zeros": lambda d: torch.zeros(2, device=d),
    "ones": lambda d: torch.ones(2, device=d),
    "full": lambda d: torch.full((2,), 0.5, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "arange": lambda d: torch.arange(0.0, 2.0, 0.5, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "logspace": lambda d: torch.logspace(0, 1, 2, device=d),
    "tensor": lambda d: torch.tensor([0.5], device=d),
    "tensor_complex": lambda d: torch.tensor([0.5j], device=d),
    "scalar_tensor": lambda d: torch.scalar_tensor(0.5, device=d),
    "rand": lambda d: torch.rand(2, device=d) * 0,
    "randn": lambda d: torch.randn(2, device=d) * 0,
    "division": lambda d: on(d, torch.tensor([1, 2])) / 2,
    "integer_times_number": lambda d: on(d, torch.tensor([1, 2])) * 0.5,
    "square_root": lambda d: on(d, torch.tensor([1, 4])).sqrt(),
    "integer_power": lambda d: on(d, torch.tensor([1, 4])) ** 0.5,
    "bool_sum": lambda d: on(d, torch.tensor([True, False])) + 0.5,
}
_ORDER = (torch.float32, torch.float64, torch.float16, torch.float32)


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@scenario()
def default_dtype(device: str) -> Results:
    """Return the results of calls without a dtype while the default dtype changes and changes back."""
    results: Results = {}
    for i, dtype in enumerate(_ORDER):
        with _default_dtype(dtype):
            results.update({f"{name}_{i}": offered(partial(_called, made, device)) for name, made in CALLS.items()})
    return results


def _called(made: Made, device: str) -> torch.Tensor:
    try:
        return made(device)
    except TypeError as e:  # the device does not have the dtype
        raise NotOffered(first_line(e)) from e
    except RuntimeError as e:
        if holds(device, made("cpu").dtype):
            raise
        raise NotOffered(first_line(e)) from e


@scenario(exact=True)
def default_device(device: str) -> Results:
    """Return whether calls without a device put their results on the default one, and on CPU behind it."""
    factories = ("zeros", "ones", "empty", "rand")
    results: Results = {}
    with torch.device(device):
        for name in factories:
            results[name] = torch.tensor(getattr(torch, name)(2).device == torch.zeros(1, device=device).device)
        results["tensor"] = torch.tensor([1.5, 2.5]) + torch.ones(2, device=device)
        results["arange"] = torch.arange(3) + torch.ones(3, dtype=torch.int64, device=device)
        results["linear"] = torch.nn.Linear(2, 3).weight.detach() * 0 + torch.ones(3, 2, device=device)
    results["behind"] = torch.tensor(all(getattr(torch, name)(2).device.type == "cpu" for name in factories))
    return results
