"""The distance of eigenvectors and singular vectors, which are right up to phase, from CPU's. Pure, on CPU tensors.

Source of the bound: Davis and Kahan, "The rotation of eigenvectors by a perturbation" (1970), and Wedin's theorem for
singular vectors. A stable algorithm returns the vectors of a matrix that differs from the given matrix by a few units
in the last place of the norm. This turns a vector by at most this error divided by the distance between the vector's
eigenvalue or singular value and the nearest other value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.judging import bits
from conformance.judging.equivalence import wide
from conformance.judging.phases import OF_VECTORS, are_alike, columns, phases
from conformance.judging.views import host_copy
from conformance.ops.family import OpFacts

# Units in the last place of the norm, times the square root of the size. LAPACK differs by 5 from itself.
UNITS = 64.0


@dataclass(frozen=True, slots=True)
class Turned:
    """A vector of a result that is further from CPU's than allowed. ``index``: of the batch, then of the vector."""

    result: int
    index: list[int]
    distance: float
    allowed: float


def turned(facts: OpFacts, expected: Sequence[Any], actual: Sequence[Any]) -> Turned | None:
    """Return the first vector that is too far from CPU's. Distances are relative to the length of CPU's vector.

    ``expected`` and ``actual`` are the results of CPU and of the device, each right up to phase. Phases do not count.
    If the value of a vector is close to another value, every vector of a plane is right; :func:`_allowed` is large
    there.
    """
    at = facts.singular_values if facts.eigenvalues is None else facts.eigenvalues
    if at is None or not are_alike(expected, actual):
        return None
    for i, kind in facts.equivalence:
        given, device = expected[i], host_copy(actual[i])
        count = expected[at].shape[-1]
        if kind not in OF_VECTORS or bits.same_bits(given, device) or not count:
            continue
        a, b = (wide(t[..., :count]) for t in columns(kind, given, device))
        if a.shape[-1] < count:
            continue
        distance = (b - a * phases(a, b).unsqueeze(-2)).norm(dim=-2) / a.norm(dim=-2)
        allowed = _allowed(expected[at], max(given.shape[-2:]), of_rest=facts.eigenvalues is None)
        wrong = distance > allowed
        if bool(wrong.any()):
            index = tuple(int(n) for n in wrong.nonzero()[0])
            return Turned(i, list(index), distance[index].item(), allowed[index].item())
    return None


def _allowed(values: torch.Tensor, size: int, *, of_rest: bool) -> torch.Tensor:
    """Return how far each vector may be from CPU's; infinite or NaN where any vector is right.

    ``of_rest``: the matrix need not be square, so that the distance to 0 counts too.
    """
    info = torch.finfo(values.dtype)
    values = values.to(torch.float64)
    apart = (values.unsqueeze(-1) - values.unsqueeze(-2)).abs()
    apart.diagonal(dim1=-2, dim2=-1).fill_(float("inf"))
    gap = apart.amin(-1)
    gap = torch.minimum(gap, values.abs()) if of_rest else gap
    norm = values.abs().amax(-1, keepdim=True)
    gap = torch.where(gap > info.eps**0.5 * norm, gap, torch.zeros_like(gap))
    return UNITS * size**0.5 * torch.maximum(norm * info.eps + info.tiny, info.eps * gap) / gap
