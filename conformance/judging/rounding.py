"""Results that are all rounded in one direction: each is within its bound, and together they drift. Pure.

Where a kernel drops the lower half of float32's bits to make bfloat16, no element is off by a unit, and the mean of all
is off by half a unit. Sums of such results, and weights that are updated by them, go wrong after some hundred steps.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.judging.closeness import widen
from conformance.vocabulary import Fact

# The fewest different numbers that must be rounded to judge their direction.
_NUMBERS = 128
# A number that is nearer than this part of a unit to a number of the dtype shows no direction: truncation and
# rounding give the same.
_NEAR = 1 / 16
# The least share, among the elements that differ from CPU's or from the reference, that lies on one side of it.
_ONE_SIDED = 0.98
# If elements are rounded to the nearest number, none is off by more than half a unit. If they are rounded in one
# direction, half of them are.
_FAR, _OFTEN = 0.55, 0.3
# The largest share of CPU's own elements on that side.
_TWO_SIDED = 0.8

_DIRECTIONS = ("toward zero", "away from zero", "down", "up")


def may_be_directed(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Return whether ``actual`` elements that differ from CPU's lie on one side of CPU's. Needs no reference."""
    if not _is_small(expected.dtype) or expected.numel() < _NUMBERS:
        return False
    theirs, ours = widen(expected).flatten(), widen(actual).flatten()
    differ = (ours != theirs) & ours.isfinite() & theirs.isfinite()
    if int(differ.sum()) < _NUMBERS * _OFTEN:
        return False
    return any(float(s.gt(0).double().mean()) >= _ONE_SIDED for s in _along((ours - theirs)[differ], theirs[differ]))


def directed(expected: torch.Tensor, actual: torch.Tensor, wide: torch.Tensor) -> dict[str, Any] | None:
    """Return the facts if ``actual`` is the float64 result ``wide`` rounded in one direction, and CPU's own is not."""
    theirs, ours, true = (widen(t).flatten() for t in (expected, actual, wide))
    info = torch.finfo(expected.dtype)
    judged = true.isfinite() & ours.isfinite() & theirs.isfinite() & (true.abs() >= info.tiny)
    unit = torch.ldexp(torch.tensor(info.eps, dtype=torch.float64), true.abs().log2().floor())
    judged &= (true - true.to(expected.dtype).double()).abs() > _NEAR * unit
    true, order = true[judged].sort()
    true, order = (t[_first_of_equal(true)] for t in (true, order))
    if true.numel() < _NUMBERS:
        return None
    ours, theirs = ((t[judged][order] - true) / unit[judged][order] for t in (ours, theirs))
    for name, off, of_cpu in zip(_DIRECTIONS, _along(ours, true), _along(theirs, true), strict=True):
        one_sided = _share(off > 0) >= _ONE_SIDED and _share(off > _FAR) >= _OFTEN
        if one_sided and _share(of_cpu > 0) <= _TWO_SIDED:
            mean, own = float(off.mean()), float(of_cpu.mean())
            return {"kind": Fact.ROUNDING.value, "direction": name, "of": true.numel(), "mean": mean, "cpu": own}
    return None


def _is_small(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point and torch.finfo(dtype).eps > torch.finfo(torch.float32).eps)


def _along(off: torch.Tensor, true: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return how far elements are off in each of ``_DIRECTIONS``."""
    outward = off * torch.sgn(true)
    return -outward, outward, -off, off


def _first_of_equal(ordered: torch.Tensor) -> torch.Tensor:
    """Return elementwise whether a number differs from the number before it."""
    return torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])[: ordered.numel()]


def _share(mask: torch.Tensor) -> float:
    return float(mask.double().mean())
