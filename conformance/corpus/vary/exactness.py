"""Whether CPU computes a function exactly enough for samples that evaluate it densely: a device may be nearer."""

from __future__ import annotations

import torch

# CPU is inexact where more than a part of the elements is so many units in the last place of float32 off, for which it
# computes in small floats too. Some functions cancel in a part of their domain: the judge allows for that.
_OFF = 64
_PART_OFF = 1 / 8


def is_far(result: torch.Tensor, true: torch.Tensor) -> bool:
    """Whether many elements of a float result are far from those of the true one that its dtype holds."""
    if not result.is_floating_point() or result.shape != true.shape or not result.numel():
        return False
    info, size = torch.finfo(result.dtype), true.abs()
    unit = 2 * info.eps + _OFF * torch.finfo(torch.float32).eps
    near = (result.double() - true).abs() <= unit * size + info.smallest_normal
    return float((~near & (size <= info.max / 2)).double().mean()) > _PART_OFF
