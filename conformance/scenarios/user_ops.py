"""Ops that a user defines for CPU. They test a device's fallback with schemas that torch's own ops hardly have.

A backend without a fallback has no kernel for them, which is not a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from conformance.scenarios.model import Results, offered, on, scenario

NAMESPACE = "conformance_user_ops"
_VALUES = torch.arange(12.0).view(3, 4) % 5 - 2


def _facts(x: torch.Tensor, scale: float, doubled: bool, name: str, sizes: list[int]) -> tuple[Any, ...]:
    return x * scale, len(name) + sum(sizes), scale / 2, not doubled


def _each(tensors: list[torch.Tensor], by: torch.Tensor) -> None:
    for i, tensor in enumerate(tensors):
        tensor.add_(by.sum() + i)


def _present(tensors: list[torch.Tensor | None], weights: torch.Tensor | None = None) -> list[torch.Tensor]:
    found = [tensor * 2 for tensor in tensors if tensor is not None]
    return [*found, *([] if weights is None else [weights + len(found)])]


def _scaled(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return x.mul_(by)


def _two(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(1)
    y.copy_(x[0])


def _turned(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return out.resize_(x.t().shape).copy_(x.t())


def _numbered(x: torch.Tensor, dtype: torch.dtype, device: torch.device | None = None) -> torch.Tensor:
    return torch.arange(x.numel(), dtype=dtype, device=device or x.device).view(x.shape).t()


def _empty(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:0].clone(), x.sum()


#: The kernels of the ops, by their schemas.
OPS: dict[str, Callable[..., Any]] = {
    "facts(Tensor x, float scale, bool doubled, str name, int[] sizes) -> (Tensor, int, float, bool)": _facts,
    "each(Tensor(a!)[] tensors, Tensor by) -> ()": _each,
    "present(Tensor?[] tensors, Tensor? weights=None) -> Tensor[]": _present,
    "scaled(Tensor(a!) x, Tensor by) -> Tensor(a!)": _scaled,
    "two(Tensor(a!) x, *, Tensor(b!) y) -> ()": _two,
    "turned(Tensor x, *, Tensor(a!) out) -> Tensor(a!)": _turned,
    "numbered(Tensor x, *, ScalarType dtype, Device? device=None) -> Tensor": _numbered,
    "empty(Tensor x) -> (Tensor, Tensor)": _empty,
}


@cache
def _library() -> torch.library.Library:
    """Define the ops, once in a process, with kernels for CPU alone. They exist as long as the result.

    Torch 2.6 and 2.8 have no kernel that leads from autograd to a renamed device, so each op has a fallthrough for
    autograd.
    """
    library = torch.library.Library(NAMESPACE, "DEF")
    for schema, kernel in OPS.items():
        library.define(schema)
        name = schema.partition("(")[0]
        library.impl(name, kernel, "CPU")
        library.impl(name, torch.library.fallthrough_kernel, "Autograd")
    return library


Calls = dict[str, Callable[[], torch.Tensor]]


@scenario(exact=True)
def kernels_of_cpu(device: str) -> Results:
    """An op that has a kernel for CPU alone gives what it gives on CPU, and writes what it says that it writes."""
    _library()
    ops, x = getattr(torch.ops, NAMESPACE), on(device, _VALUES)
    calls = _calls_for_results(ops, x) | _calls_that_write(ops, x)
    return {name: offered(call) for name, call in calls.items()}


def _calls_for_results(ops: Any, x: torch.Tensor) -> Calls:
    def facts() -> torch.Tensor:
        scaled, number, half, flag = ops.facts(x.t(), 4.0, True, "abc", [5, 6])
        return torch.cat([scaled.cpu().flatten(), torch.tensor([float(number), half, float(flag)])])

    def present(*tensors: torch.Tensor | None, weights: torch.Tensor | None = None) -> torch.Tensor:
        return torch.cat([tensor.flatten() for tensor in ops.present(list(tensors), weights)])

    def numbered(**given: Any) -> torch.Tensor:
        result: torch.Tensor = ops.numbered(x, dtype=torch.int32, **given)
        if result.device != x.device:
            raise AssertionError(f"the result is on {result.device}")
        return result

    return {
        "results_of_other_types": facts,
        "tensors_that_are_none": lambda: present(None, x.t(), None, x[1]),
        "optional_tensor": lambda: present(x, weights=x[2]),
        "dtype_given": numbered,
        "device_given": partial(numbered, device=x.device),
        "no_elements": lambda: torch.cat([tensor.flatten() for tensor in ops.empty(x)]),
    }


def _calls_that_write(ops: Any, x: torch.Tensor) -> Calls:
    def each(*tensors: torch.Tensor) -> torch.Tensor:
        ops.each(list(tensors), x)
        return torch.cat([tensor.flatten() for tensor in tensors])

    def within(write: Callable[[torch.Tensor], Any]) -> torch.Tensor:
        """Return whole rows after a part of them was written."""
        rows = x.clone()
        write(rows[1:, ::2])
        return rows

    def returned() -> torch.Tensor:
        written = x.clone()
        result: torch.Tensor = ops.scaled(written, x[0] + 1)
        if result is not written:
            raise AssertionError("an op that returns the argument that it writes returned another tensor")
        return result

    def two() -> torch.Tensor:
        first, second = x.clone(), x.new_zeros(8)[1::2]
        ops.two(first, y=second)
        return torch.cat([first.flatten(), second])

    def turned(out: torch.Tensor) -> torch.Tensor:
        ops.turned(x, out=out)
        return out

    return {
        "tensors_of_a_list_written": lambda: each(x.clone(), x.t().clone(), x[0, 0].clone()),
        "views_of_a_list_written": lambda: within(lambda part: each(part, x.clone()[0])),
        "list_without_tensors": lambda: torch.tensor(ops.each([], x) is None),
        "argument_returned": returned,
        "part_written": lambda: within(lambda part: ops.scaled(part, part + 1)),
        "expanded_argument": lambda: ops.scaled(x.clone(), x[:1].expand(3, 4)),
        "two_written": two,
        "out_grows": lambda: turned(x.new_empty(0)),
        "out_with_strides": lambda: turned(x.new_zeros(3, 4).t()),
    }
