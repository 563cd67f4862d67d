"""Comparison of results that are Python numbers, not tensors."""

from __future__ import annotations

from typing import Any

import torch

from conformance.judging import compare
from conformance.judging.closeness import Closeness
from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch


def same(want: Any, got: Any, signed_zeros: bool) -> bool:
    """Return whether two results of one type are equal. Floats and complex numbers: equal bits, or both are NaN.

    ``signed_zeros``: whether 0.0 and -0.0 differ.
    """
    if not isinstance(want, (float, complex)):
        return bool(want == got)
    return not bool(compare.differing(*_numbers(want, got), signed_zeros=signed_zeros))


def close(expected: CallOutcome, want: complex, got: complex, name: str) -> Mismatch | None:
    """Return the difference of the device's number from CPU's, if the precision of the arguments does not explain it.

    ``expected``: CPU's outcome. Both are floats, or both are complex numbers.
    """
    ours, theirs = _numbers(want, got)
    return compare.close(ours, theirs, None, Closeness(dtype=_narrowest(expected)), name)


def _numbers(want: complex, got: complex) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two numbers of one type as tensors of one element, in the dtype that holds every number of that type."""
    both = torch.tensor([want, got], dtype=torch.complex128 if isinstance(want, complex) else torch.float64)
    return both[0], both[1]


def _narrowest(expected: CallOutcome) -> torch.dtype | None:
    """Return the floating dtype of an argument with the fewest digits, in which a number may be computed, else None.

    In place of a small float it is float32, in which small floats have to be computed.
    """
    dtypes = {a.tensor.dtype for a in expected.side.arguments if a.slot.pool}
    floats = [dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    narrowest = max(floats, key=lambda dtype: torch.finfo(dtype).eps, default=None)
    small = narrowest is not None and torch.finfo(narrowest).eps > torch.finfo(torch.float32).eps
    return torch.float32 if small else narrowest
