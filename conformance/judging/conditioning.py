"""How much the rounding of a case's arguments moves its results: Monte Carlo arithmetic on the CPU reference. Pure.

If large numbers cancel, the result holds the rounding errors of these numbers, so its own magnitude does not show how
much two correct kernels may differ. The reference is therefore computed again with perturbed arguments, in several
seeded draws. The *spread* of its results, for half a unit in the last place of each argument, is the effect of
rounding alone (Parker, "Monte Carlo Arithmetic", 1997; here only the arguments are perturbed).

Half a unit cannot be represented in float64, and may be rounded away on the way to the result. The draws are
therefore `NEAR` half units large, and the spread is a `NEAR`-th of theirs. At a discontinuity, such as `floor` of a
whole number, results jump however small the perturbation is, and a jump must excuse nothing. Each draw is therefore
repeated with `FAR` half units. The effect of rounding grows with the perturbation. A jump does not grow, and the
spread of such an element is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from conformance.judging.closeness import are_finite

DRAWS = 8
NEAR, FAR = 8.0, 64.0  # half units in the last place

_FARTHEST = 2.0**-8  # relative to a number, so that results keep about their magnitude

# How much larger the distances of the far draws are than those of the near draws, at least and at most. They are 8
# times as large where the result depends smoothly on the arguments, 2.8 times where a root is taken of a cancelling
# sum, and equal at a jump.
_GROWS = (2.5, 16.0)


def nearby(half_unit: float, draw: int) -> float:
    """Return the largest relative change of a number in a draw of the nearby arguments.

    An intermediate number, such as the sigmoid of 20, may lie on a much coarser grid than the arguments. The draws
    are therefore large, and every other draw is larger still.
    """
    size = FAR if draw % 2 else FAR * FAR
    return min(size * half_unit, max(_FARTHEST, half_unit))


def perturb(storage: torch.Tensor, eps: float, size: float, draw: int) -> None:
    """Move each element of a 1-D floating or complex ``storage`` in place, by up to ``size`` x ``eps`` x its magnitude.

    The direction of each element depends on ``draw`` and its index alone, so that draws of two sizes are parallel.
    """
    parts = torch.view_as_real(storage) if storage.dtype.is_complex else storage
    parts.mul_(1 + _directions(parts.shape, draw) * (eps * size))


@lru_cache(maxsize=DRAWS)  # the far draws of a case have the directions of its near ones
def _directions(shape: torch.Size, draw: int) -> torch.Tensor:
    """Return float64 numbers from -1 to 1. Do not write to them."""
    return torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(draw)) * 2 - 1


def perturbed(number: float | complex, eps: float, size: float, draw: int) -> float | complex:
    """Return ``number`` moved as :func:`perturb` moves an element of a storage."""
    moved = torch.tensor([number], dtype=torch.complex128 if isinstance(number, complex) else torch.float64)
    perturb(moved, eps, size, draw)
    found: float | complex = moved[0].item()
    return found


def spread(reference: torch.Tensor, near: Sequence[torch.Tensor], far: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return how far half a unit in the last place of the arguments moves each element of ``reference``.

    An element is NaN, which means unknown, if the ``near`` and ``far`` draws do not differ by rounding alone, or if
    none of them is finite. Other draws that are not finite are ignored. All tensors have one shape and are float64 or
    complex128.
    """
    small, large = _largest(reference, near), _largest(reference, far)
    least, most = _GROWS
    smooth = (large >= least * small) & (large <= most * small)
    return torch.where(smooth, small / NEAR, torch.full_like(small, torch.nan))


def _largest(reference: torch.Tensor, draws: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the largest finite distance of a draw from the reference, per element; NaN where there is none."""
    largest = torch.full_like(reference.abs(), torch.nan)
    for draw in draws:
        distance = (draw - reference).abs()
        known = distance if are_finite(distance) else distance.masked_fill(~distance.isfinite(), torch.nan)
        largest = torch.fmax(largest, known)  # fmax ignores NaN
    return largest
