"""Check of CPU's exactness, for samples that evaluate a function densely: a device may be more exact."""

from __future__ import annotations

import torch

# CPU is inexact if more than ``_PART_OFF`` of the elements are off by more than ``_OFF`` units in the last place of
# float32, in which CPU also computes for smaller floats. Some functions cancel in a part of their domain, which the
# judge allows.
_OFF = 64
_PART_OFF = 1 / 8


def is_far(result: torch.Tensor, true: torch.Tensor) -> bool:
    """Return whether many elements of a float result are far from the true ones, where its dtype can hold those."""
    if not result.is_floating_point() or result.shape != true.shape or not result.numel():
        return False
    info, size = torch.finfo(result.dtype), true.abs()
    unit = 2 * info.eps + _OFF * torch.finfo(torch.float32).eps
    near = (result.double() - true).abs() <= unit * size + info.smallest_normal
    return float((~near & (size <= info.max / 2)).double().mean()) > _PART_OFF
