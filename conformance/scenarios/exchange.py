"""Tensors that go to another library by DLPack, and come back."""

from __future__ import annotations

from functools import partial

import torch
from torch.utils import dlpack  # a backend may replace its functions

from conformance.scenarios.model import NotOffered, Results, first_line, laid_out, offered, on, scenario

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.uint8, torch.bool)
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


def _again(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that a capsule of a tensor gives.

    Raises NotOffered if torch makes none of a dense tensor of the device and dtype, either.
    """
    refused = _refused(tensor)
    if refused is not None:
        dense = _refused(torch.empty(2, dtype=tensor.dtype, device=tensor.device))
        raise NotOffered(f"DLPack of {tensor.device.type}: {first_line(dense)}") if dense else refused
    capsule = dlpack.to_dlpack(tensor)
    found = dlpack.from_dlpack(capsule)
    assert isinstance(found, torch.Tensor)
    if found.device != tensor.device:
        raise AssertionError(f"it is on {found.device}, and was on {tensor.device}")
    return found


def _refused(tensor: torch.Tensor) -> Exception | None:
    """Return the error with which torch refuses to make a capsule of a tensor; None if it makes one."""
    try:
        dlpack.to_dlpack(tensor)
    except (RuntimeError, ValueError, BufferError) as e:
        return e
    return None


@scenario(exact=True, area="memory")
def tensors_through_dlpack(device: str) -> Results:
    """A tensor that goes through DLPack has the values and strides that it had, and shares its memory."""

    def values(dtype: torch.dtype) -> torch.Tensor:
        return _again(on(device, _VALUES.to(dtype)))

    def written(view: str) -> torch.Tensor:
        base = on(device, _VALUES.float())
        _again(VIEWS[view](base)).add_(1)
        return base

    def lies(view: str) -> torch.Tensor:
        found = _again(VIEWS[view](on(device, _VALUES.float())))
        numbers = laid_out(device, *found.shape, *found.stride())
        if isinstance(numbers, NotOffered):
            raise numbers
        return numbers

    def outlives() -> torch.Tensor:
        found = _again(on(device, _VALUES.float()))  # the tensor that it was made from is gone
        others = [on(device, torch.full((3, 4), -1.0)) for _ in range(8)]
        del others
        return found

    results: Results = {f"values.{dtype}": offered(partial(values, dtype)) for dtype in DTYPES}
    for view in VIEWS:
        results[f"written.{view}"] = offered(partial(written, view))
        results[f"lies.{view}"] = offered(partial(lies, view))
    results["outlives"] = offered(outlives)
    return results
