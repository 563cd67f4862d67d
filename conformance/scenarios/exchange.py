"""Tensors that are exchanged with another library by DLPack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils import dlpack  # a backend may replace its functions

from conformance.scenarios.asking import another
from conformance.scenarios.model import NotOffered, Results, first_line, laid_out, offered, on, scenario

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.uint8, torch.bool)
#: Errors with which torch, and methods of tensors, refuse an exchange.
REFUSALS = (RuntimeError, ValueError, BufferError, TypeError)
_VALUES = torch.tensor([[0, 1, 2, 3], [1, 0, 5, 7], [0, 9, 1, 1]])
#: Views of a tensor of 3 x 4 elements.
VIEWS = {
    "whole": lambda t: t,
    "behind_an_offset": lambda t: t[1:, 2:],
    "transposed": lambda t: t.t(),
    "every_second": lambda t: t[:, ::2],
    "of_one_element": lambda t: t[1, 2],
    "of_nothing": lambda t: t[3:],
}


def _by_capsule(tensor: torch.Tensor) -> object:
    return dlpack.from_dlpack(dlpack.to_dlpack(tensor))


def _by_protocol(tensor: torch.Tensor) -> object:
    """Return the tensor that another library gets by the tensor's DLPack methods, as in Python's array API."""
    return torch.from_dlpack(tensor)


#: Ways to exchange a tensor by DLPack.
WAYS: dict[str, Callable[[torch.Tensor], object]] = {"capsule": _by_capsule, "protocol": _by_protocol}


def exchanged(tensor: torch.Tensor, way: str = "capsule") -> torch.Tensor:
    """Return the tensor that an exchange gives.

    Raises NotOffered if torch also refuses a dense tensor of the device and dtype.
    """
    try:
        found = WAYS[way](tensor)
    except REFUSALS as e:
        _must_be_offered(tensor.dtype, tensor.device, way)
        raise e from None
    assert isinstance(found, torch.Tensor)
    if found.device != tensor.device:
        raise AssertionError(f"it is on {found.device}, and was on {tensor.device}")
    return found


def _must_be_offered(dtype: torch.dtype, device: torch.device, way: str) -> None:
    """Raise NotOffered if even a dense tensor cannot be exchanged in this way."""
    try:
        WAYS[way](torch.empty(2, dtype=dtype, device=device))
    except REFUSALS as e:
        raise NotOffered(f"DLPack of {device.type}: {first_line(e)}") from e


@scenario(exact=True, area="memory")
def tensors_through_dlpack(device: str) -> Results:
    """A tensor that goes through DLPack has the values and strides that it had, and shares its memory."""

    def values(dtype: torch.dtype) -> torch.Tensor:
        return exchanged(on(device, _VALUES.to(dtype)))

    def written(view: str) -> torch.Tensor:
        base = on(device, _VALUES.float())
        exchanged(VIEWS[view](base)).add_(1)
        return base

    def lies(view: str) -> torch.Tensor:
        found = exchanged(VIEWS[view](on(device, _VALUES.float())))
        numbers = laid_out(device, *found.shape, *found.stride())
        if isinstance(numbers, NotOffered):
            raise numbers
        return numbers

    def outlives() -> torch.Tensor:
        found = exchanged(on(device, _VALUES.float()))  # the original tensor is gone
        others = [on(device, torch.full((3, 4), -1.0)) for _ in range(8)]
        del others
        return found

    results: Results = {f"values.{dtype}": offered(partial(values, dtype)) for dtype in DTYPES}
    for view in VIEWS:
        results[f"written.{view}"] = offered(partial(written, view))
        results[f"lies.{view}"] = offered(partial(lies, view))
    results["outlives"] = offered(outlives)
    return results


@scenario(exact=True, area="memory")
def tensors_of_other_libraries(device: str) -> Results:
    """A tensor says by the methods of DLPack where it is, and is taken by them; what has a gradient is refused."""

    def given(dtype: torch.dtype, view: str) -> torch.Tensor:
        base = on(device, _VALUES.to(dtype, copy=True))
        found = exchanged(VIEWS[view](base), "protocol")
        found.zero_()
        return base

    def place(where: Callable[[], str]) -> torch.Tensor:
        tensor = torch.zeros(2, device=where())
        _must_be_offered(tensor.dtype, tensor.device, "protocol")
        kind, index = tensor.__dlpack_device__()
        host = torch.zeros(1).__dlpack_device__()[0]
        return torch.tensor([(kind == host) == (tensor.device.type == "cpu"), index == (tensor.device.index or 0)])

    def elsewhere() -> torch.Tensor:
        return exchanged(torch.arange(3.0, device=another(device)), "protocol")

    def refuses(call: Callable[[], Any], way: str = "protocol") -> torch.Tensor:
        _must_be_offered(torch.float32, torch.zeros(1, device=device).device, way)
        try:
            call()
        except REFUSALS:
            return torch.tensor(True)
        return torch.tensor(False)

    def taken_twice() -> None:
        capsule = dlpack.to_dlpack(torch.ones(2, device=device))
        dlpack.from_dlpack(capsule)
        dlpack.from_dlpack(capsule)

    def unread() -> torch.Tensor:
        """Make capsules that are never consumed: the suite sees whether their memory is kept."""
        _must_be_offered(torch.float32, torch.zeros(1, device=device).device, "protocol")
        for _ in range(3):
            torch.ones(1000, device=device).__dlpack__()
        return torch.tensor(True)

    calls: dict[str, Callable[[], torch.Tensor]] = {
        f"{dtype}.whole": partial(given, dtype, "whole") for dtype in DTYPES
    }
    calls |= {f"written.{view}": partial(given, torch.float32, view) for view in VIEWS}
    calls |= {
        "place": partial(place, lambda: device), "place_of_another": partial(place, partial(another, device)),
        "of_another": elsewhere, "taken_twice": partial(refuses, taken_twice, "capsule"), "unread": unread,
        "with_a_gradient": partial(refuses, lambda: torch.ones(2, device=device, requires_grad=True).__dlpack__()),
        "conjugated": partial(refuses, lambda: torch.ones(2, device=device, dtype=torch.complex64).conj().__dlpack__()),
    }  # fmt: skip
    return {name: offered(call) for name, call in calls.items()}
