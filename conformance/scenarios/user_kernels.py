"""Ops that a user defines with ``torch.library.custom_op``, with a kernel for the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, offered, on, scenario

NAMESPACE = "conformance_user_kernels"
#: For each kernel that ran: the type of the device that it is for, and that of its argument's device.
CALLS: list[tuple[str, str]] = []


def _scaled(of: str, x: torch.Tensor, by: float) -> torch.Tensor:
    CALLS.append((of, x.device.type))
    return x * by


def _scale(of: str, x: torch.Tensor, by: float) -> None:
    CALLS.append((of, x.device.type))
    x.mul_(by)


@cache
def _ops(kind: str) -> Any:
    """Return the ops, with kernels for CPU and for a kind of device. They are defined once in a process."""

    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return _scaled("cpu", x, by)

    def scale(x: torch.Tensor, by: float) -> None:
        _scale("cpu", x, by)

    def keep(ctx: Any, inputs: tuple[Any, ...], **_: Any) -> None:
        ctx.by = inputs[1]

    define = torch.library.custom_op
    result: Any = define(f"{NAMESPACE}::scaled_{kind}", scaled, mutates_args=(), device_types="cpu")
    written: Any = define(f"{NAMESPACE}::scale_{kind}", scale, mutates_args=("x",), device_types="cpu")
    if kind != "cpu":
        result.register_kernel(kind)(partial(_scaled, kind))
        written.register_kernel(kind)(partial(_scale, kind))
    result.register_autograd(lambda ctx, gradient: (gradient * ctx.by, None), setup_context=keep)
    result.register_vmap(lambda _, dims, x, by: (result(x, by), dims[0]))
    return SimpleNamespace(scaled=result, scale=written)


@scenario(exact=True, slow=True)  # torch imports its compiler when an op is defined
def kernels_of_the_device(device: str) -> Results:
    """An op with a kernel for the device runs this kernel, in each mode, with the gradient that it was given."""
    kind = torch.device(device).type
    ops, x = _ops(kind), on(device, torch.arange(6.0).view(2, 3))
    calls = _calls_for_results(kind, ops.scaled, x) | _calls_that_write(ops.scale, x)

    def counted(call: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return the result, the number of kernels that ran, and whether all of them are for the device.

        Raises AssertionError if the call does not reach a kernel.
        """
        CALLS.clear()
        try:
            found = call().detach().cpu().flatten()
        except NotImplementedError as e:
            if NAMESPACE in str(e):  # the error is about the op that has the kernel
                raise AssertionError(first_line(e)) from e
            raise
        return torch.cat([found, torch.tensor([len(CALLS), set(CALLS) == {(kind, kind)}])])

    return {name: offered(partial(counted, call)) for name, call in calls.items()}


def _autocast(kind: str) -> AbstractContextManager[Any]:
    if not torch.amp.is_autocast_available(kind):
        raise NotOffered("autocast")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a dtype that the device does not cast to
        mode: AbstractContextManager[Any] = torch.autocast(kind, dtype=torch.bfloat16)
        return mode


def _calls_for_results(kind: str, scaled: Any, x: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    def gradient() -> torch.Tensor:
        leaf = x.clone().requires_grad_()
        result = scaled(leaf * 1, 3.0)
        result.sum().backward()
        assert leaf.grad is not None
        return torch.cat([result.detach(), leaf.grad])

    def within(mode: Callable[[], AbstractContextManager[Any]], call: Callable[[], torch.Tensor]) -> torch.Tensor:
        with mode():
            return call()

    def plain() -> torch.Tensor:
        return torch.as_tensor(scaled(x, 2.0))

    return {
        "plain": plain,
        "view": lambda: scaled(x.t()[1:], 2.0),
        "parameter": lambda: scaled(torch.nn.Parameter(x), 2.0),
        "gradient": gradient,
        "without_gradients": partial(within, torch.no_grad, plain),
        "inference": partial(within, torch.inference_mode, lambda: scaled(x.clone(), 2.0) + 0),
        "autocast": partial(within, partial(_autocast, kind), plain),
        "gradient_in_autocast": partial(within, partial(_autocast, kind), gradient),
        "each_row": lambda: torch.vmap(lambda row: scaled(row, 2.0))(x),
        "each_column": lambda: torch.vmap(lambda column: scaled(column, 2.0), in_dims=1)(x),
    }


def _calls_that_write(scale: Any, x: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    def written(view: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        whole = x.clone()
        scale(view(whole), 2.0)
        return whole

    def saved_for_a_gradient() -> torch.Tensor:
        """Return 1 if autograd detects that a tensor was written after it was saved, else 0."""
        factor = x.clone()
        loss = (x.clone().requires_grad_() * factor).sum()
        scale(factor, 2.0)
        try:
            loss.backward()
        except RuntimeError:
            return torch.tensor(1.0)
        return torch.tensor(0.0)

    return {
        "written": lambda: written(lambda whole: whole),
        "part_written": lambda: written(lambda whole: whole[1:, ::2]),
        "saved_and_written": saved_for_a_gradient,
    }
