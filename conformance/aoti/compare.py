"""The first difference of a compiled model's tensors from eager's, beyond rounding."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from conformance.triage.compiled.elements import far, largest, told, unlike, widened


def first_difference(expected: Sequence[object], actual: Sequence[object], what: str = "output") -> str:
    """Return the first difference, "" if there is none. Tensors are compared on CPU. Strides are not compared."""
    if len(expected) != len(actual):
        return f"{len(actual)} {what}s, eager has {len(expected)}"
    for index, (one, other) in enumerate(zip(expected, actual)):
        if found := difference(one, other):
            return f"{what} {index}: {found}"
    return ""


def difference(expected: object, actual: object) -> str:
    """Return how a value differs from eager's, "" if it does not."""
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        same = expected == actual or (expected != expected and actual != actual)  # NaN
        return "" if type(expected) is type(actual) and same else f"{actual!r}, eager has {expected!r}"
    if found := unlike(expected, actual, "eager has"):
        return found
    if expected.device.type == "meta":
        return ""
    return _values(expected.detach().cpu(), actual.detach().cpu())


def tolerance(dtype: torch.dtype) -> float:
    """Return the square root of the epsilon: the difference, relative to the largest value, that rounding explains.

    A model rounds many times, in another order. A wrong stride or size moves values by their own magnitude.
    """
    return float(torch.finfo(dtype).eps) ** 0.5 if dtype.is_floating_point or dtype.is_complex else 0.0


def _values(expected: torch.Tensor, actual: torch.Tensor) -> str:
    """Return how values on CPU differ by more than rounding explains, "" if they do not."""
    if expected.numel() == 0:
        return ""
    if expected.is_floating_point() or expected.is_complex():
        wide = widened(expected)
        wrong = far(wide, actual.to(wide.dtype), tolerance(expected.dtype) * largest(wide))
    else:
        wrong = expected != actual
    return told(expected, actual, wrong, "eager has")
