"""The first difference of two tensors, and which of their elements are too far apart."""

from __future__ import annotations

import torch


def unlike(expected: torch.Tensor, actual: torch.Tensor, reference: str = "expected") -> str:
    """Return how the shapes, dtypes or types of device of two tensors differ, "" if they are equal.

    ``reference``: the words before the expected fact.
    """
    for what, one, other in zip(("shape", "dtype", "device"), _facts(expected), _facts(actual)):
        if one != other:
            return f"{what} {other}, {reference} {one}"
    return ""


def _facts(t: torch.Tensor) -> tuple[str, str, str]:
    return str(list(t.shape)), str(t.dtype), t.device.type


def widened(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor of floating or complex numbers in double precision."""
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def largest(t: torch.Tensor) -> float:
    """Return the largest finite magnitude in a tensor, 0 if there is none."""
    finite = t[torch.isfinite(t)].abs()
    return float(finite.max()) if finite.numel() else 0.0


def far(expected: torch.Tensor, actual: torch.Tensor, bound: float) -> torch.Tensor:
    """Return a mask of the elements that differ by more than an absolute bound, or in an infinity or NaN."""
    same = (expected == actual) | (torch.isnan(expected) & torch.isnan(actual))
    near = torch.isfinite(expected) & torch.isfinite(actual) & ((expected - actual).abs() <= bound)
    return ~(same | near)


def told(expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor, reference: str = "expected") -> str:
    """Return how many elements a mask marks and the first of them, "" if it marks none.

    ``reference``: the words before the expected element.
    """
    count = int(wrong.sum())
    if not count:
        return ""
    place = tuple(int(i) for i in wrong.nonzero()[0])
    values = f"{actual[place].item()} at {list(place)}, {reference} {expected[place].item()}"
    return f"{count} of {expected.numel()} values differ: {values}"
