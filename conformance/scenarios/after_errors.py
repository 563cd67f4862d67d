"""Modes of torch after an error: calls that follow must see the right modes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from conformance.scenarios.asking import Property, held
from conformance.scenarios.model import NotOffered, Results, scenario

Call = Callable[[str], object]
Fact = tuple[Any, ...]


def _autocast(dtype: torch.dtype, kind: str) -> AbstractContextManager[Any]:
    if not torch.amp.is_autocast_available(kind):
        raise NotOffered("autocast")
    found: AbstractContextManager[Any] = torch.autocast(kind, dtype=dtype)
    return found


#: Context managers by the mode that they set, each for a type of device.
MODES: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    "none": lambda _: contextlib.nullcontext(),
    "no_grad": lambda _: torch.no_grad(),
    "inference_mode": lambda _: torch.inference_mode(),
    "autocast": partial(_autocast, torch.bfloat16),
    "autocast_float16": partial(_autocast, torch.float16),
}


def _row(device: str) -> torch.Tensor:
    return torch.ones((2, 3), device=device)


#: Calls that must raise before anything runs on the device: ops of each list of autocast, and ops of none.
REFUSED: dict[str, Call] = {
    "mm": lambda d: torch.mm(_row(d), _row(d)),
    "linear": lambda d: functional.linear(_row(d), _row(d).t()),
    "baddbmm": lambda d: torch.baddbmm(_row(d)[None], _row(d)[None], _row(d)[None]),
    "conv2d": lambda d: functional.conv2d(_row(d)[None, None], _row(d)),
    "layer_norm": lambda d: functional.layer_norm(_row(d), (2,)),
    "softmax": lambda d: _row(d).softmax(5),
    "cat": lambda d: torch.cat([_row(d), _row(d).t()]),
    "add": lambda d: _row(d) + _row(d).t(),
    "view": lambda d: _row(d).view(7),
    "sort": lambda d: _row(d).sort(4),
    "lgamma": lambda d: torch.lgamma(_row(d), out=torch.empty((2, 3), dtype=torch.int64, device=d)),
    "memory": lambda d: torch.empty(1 << 60, dtype=torch.uint8, device=d),
}

#: Calls whose results show the modes.
PROBES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mm": lambda x: torch.mm(x, x),
    "linear": lambda x: functional.linear(x, x),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x[None]),
    "layer_norm": lambda x: functional.layer_norm(x, (2,)),
    "softmax": lambda x: x.softmax(1),
    "cat": lambda x: torch.cat([x, x.bfloat16()]),
    "add": lambda x: x + 1,
    "view": lambda x: x.view(4),
}


def _told(device: str, probe: Callable[[torch.Tensor], torch.Tensor]) -> Fact:
    """Return the dtype of a call's result, whether it requires gradients, and whether it is an inference tensor.

    If the call raises, return the error's type.
    """
    x = torch.ones((2, 2), device=device, requires_grad=True)
    try:
        found = probe(x)
    except Exception as e:  # noqa: BLE001  # the op's own cells judge the call
        return (type(e).__name__,)
    return found.dtype, found.requires_grad, found.is_inference()


def _all_told(device: str) -> list[Fact]:
    modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    return [modes, *(_told(device, probe) for probe in PROBES.values())]


def within_and_behind(device: str, mode: str, refused: Call | None) -> list[list[Fact]]:
    """Return the facts of all probes in a block, after it, and in a second one.

    The first block begins with a call of ``refused``, if there is one.
    """
    kind, told = torch.device(device).type, []
    with MODES[mode](kind):
        if refused is not None:
            with contextlib.suppress(Exception):
                refused(device)
        told.append(_all_told(device))
    told.append(_all_told(device))
    with MODES[mode](kind):
        told.append(_all_told(device))
    return told


@scenario(exact=True, area="devices")
def modes_after_an_error(device: str) -> Results:
    """After a call that raised, each mode holds as without it: in its block, behind that, and in the next one."""

    def holds(mode: str, refused: Call, wanted: list[list[Fact]]) -> bool:
        return within_and_behind(device, mode, refused) == wanted

    results: Results = {}
    for mode in MODES:
        try:
            wanted = within_and_behind(device, mode, None)
        except NotOffered as e:
            results[mode] = e
            continue
        calls: dict[str, Property] = {
            f"{mode}.{name}": partial(holds, mode, refused, wanted) for name, refused in REFUSED.items()
        }
        results |= held(device, calls)
    return results
