"""Matrix factors that are not unique, or undefined because the matrix has none. Pure, on CPU tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance.judging.closeness import widen
from conformance.judging.oracle import CallOutcome
from conformance.judging.views import host_copy


def are_finite(outcome: CallOutcome) -> bool:
    """Return whether all numbers are finite in the floating arguments that a call reads."""
    read = (a.tensor for a in outcome.side.arguments if a.slot.pool)
    return all(bool(widen(t).isfinite().all()) for t in read if t.is_floating_point() or t.is_complex())


def explain(
    op: Callable[..., Any], expected: CallOutcome, actual: CallOutcome, wrong: Sequence[torch.Tensor] | None
) -> bool:
    """Return whether all ``wrong`` elements belong to matrices without factors, or come from another choice of pivots.

    ``wrong`` has a mask for each result, then one for each argument; an ``out=`` is a result too. The results are
    identified by their names in the schema. ``info`` is not 0 for a matrix without factors. A matrix is P L U for
    CPU's pivots and for other pivots, such as those chosen by another magnitude of complex numbers.
    """
    if wrong is None:
        return False
    schema = getattr(op, "_schema", None)
    names = [r.name for r in schema.returns] if schema else []
    if len(names) != len(expected.leaves) or len(names) < 2:
        return False
    masks = dict(zip(names, wrong, strict=False))
    theirs, ours = (
        {name: host_copy(leaf) for name, (_, leaf) in zip(names, outcome.leaves, strict=True)}
        for outcome in (expected, actual)
    )
    defined = _defined(theirs.get("info"))
    off = {name for name, mask in masks.items() if bool((mask & _of_batch(defined, mask)).any())}
    return not off or (off <= {"LU", "pivots"} and _same_product(theirs, ours))


def _defined(info: torch.Tensor | None) -> torch.Tensor:
    """Return for each matrix of a batch whether it has factors."""
    return torch.ones((), dtype=torch.bool) if info is None else info == 0


def _of_batch(defined: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return ``defined`` in a shape that broadcasts to ``mask``; True for a result that is not one for each matrix."""
    if mask.dim() <= defined.dim() or mask.shape[: defined.dim()] != defined.shape:
        return torch.ones((), dtype=torch.bool)
    return defined.reshape(defined.shape + (1,) * (mask.dim() - defined.dim()))


def _same_product(theirs: dict[str, torch.Tensor], ours: dict[str, torch.Tensor]) -> bool:
    """Return whether P L U is the same matrix, to half the digits of its dtype, and our L has no element above 2."""
    one, other = _product(theirs), _product(ours)
    if one is None or other is None or one[0].shape != other[0].shape:
        return False
    near = torch.finfo(theirs["LU"].dtype).eps ** 0.5
    size = float(one[0].abs().max()) if one[0].numel() else 0.0
    return bool(((one[0] - other[0]).abs() <= near * size).all()) and other[1] <= 2


def _product(results: dict[str, torch.Tensor]) -> tuple[torch.Tensor, float] | None:
    """Return P L U in double precision, and the largest magnitude in L; None if a pivot is out of range."""
    factors, pivots = results["LU"], results["pivots"]
    rows = factors.shape[-2]
    if not bool(((pivots >= 1) & (pivots <= rows)).all()):
        return None
    wide = factors.to(torch.complex128 if factors.is_complex() else torch.float64)
    p, lower, upper = torch.lu_unpack(wide, pivots)
    return p @ lower @ upper, float(lower.abs().max()) if lower.numel() else 0.0
