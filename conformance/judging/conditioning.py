"""How much the rounding of a case's arguments moves its results: Monte Carlo arithmetic on the CPU reference. Pure.

A result that is left over when large numbers cancel holds the rounding errors of those numbers, so its own magnitude
says nothing about how far two correct kernels may be apart. The reference is therefore asked again with each argument
moved by at most half a unit in the last place, in several seeded draws: the *spread* of its results is what rounding
alone can do (Parker, "Monte Carlo Arithmetic", 1997; here the arguments alone are perturbed).

At a discontinuity, such as `floor` of a whole number, results jump however small the perturbation is, and a jump must
excuse nothing. Each draw is therefore repeated `FAR` times as large. Rounding grows with the perturbation; a jump does
not, and the spread of such an element is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

DRAWS = 8
FAR = 64.0

# How much larger the spread of the far draws has to be than that of the near ones: `FAR` times where the result depends
# smoothly on the arguments, its square root where a square root is taken of what cancels, once at a jump.
_GROWS = 4.0


def perturb(storage: torch.Tensor, eps: float, size: float, draw: int) -> None:
    """Move each element of a 1-D floating or complex ``storage`` in place, by up to ``size`` x ``eps`` x its magnitude.

    The direction of each element depends on ``draw`` and its index alone, so that draws of two sizes are parallel.
    """
    parts = torch.view_as_real(storage) if storage.dtype.is_complex else storage
    generator = torch.Generator().manual_seed(draw)
    direction = torch.rand(parts.shape, dtype=torch.float64, generator=generator) * 2 - 1
    parts.mul_(1 + direction * (eps * size))


def spread(reference: torch.Tensor, near: Sequence[torch.Tensor], far: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the largest distance of the ``near`` draws from ``reference``, per element; zero where it is not rounding.

    All tensors have one shape and are float64 or complex128. Draws that are not finite are left out.
    """
    small, large = _largest(reference, near), _largest(reference, far)
    return torch.where(large >= _GROWS * small, small, torch.zeros_like(small))


def _largest(reference: torch.Tensor, draws: Sequence[torch.Tensor]) -> torch.Tensor:
    distances = [(draw - reference).abs() for draw in draws]
    largest = torch.zeros_like(reference.abs())
    for distance in distances:
        largest = torch.maximum(largest, torch.where(distance.isfinite(), distance, torch.zeros_like(distance)))
    return largest
