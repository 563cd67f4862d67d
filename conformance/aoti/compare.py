"""The first difference of a compiled model's tensors from eager's, but for rounding."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def first_difference(expected: Sequence[object], actual: Sequence[object], what: str = "output") -> str:
    """Return the first difference, "" if there is none. Tensors are compared on CPU; strides are not."""
    if len(expected) != len(actual):
        return f"{len(actual)} {what}s, eager has {len(expected)}"
    for index, (one, other) in enumerate(zip(expected, actual)):
        if found := difference(one, other):
            return f"{what} {index}: {found}"
    return ""


def difference(expected: object, actual: object) -> str:
    """Return how a value differs from eager's."""
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        return "" if type(expected) is type(actual) and expected == actual else f"{actual!r}, eager has {expected!r}"
    for name, one, other in zip(("shape", "dtype", "device"), _facts(expected), _facts(actual)):
        if one != other:
            return f"{name} {other}, eager has {one}"
    if expected.device.type == "meta":
        return ""
    return _values(expected.detach().cpu(), actual.detach().cpu())


def _facts(tensor: torch.Tensor) -> tuple[object, ...]:
    return list(tensor.shape), str(tensor.dtype), tensor.device.type


def tolerance(dtype: torch.dtype) -> float:
    """Return the largest difference that rounding explains, relative to the largest value: the root of the epsilon.

    A model rounds many times, in another order. A wrong stride or size moves values by their own magnitude.
    """
    return float(torch.finfo(dtype).eps) ** 0.5 if dtype.is_floating_point or dtype.is_complex else 0.0


def _values(expected: torch.Tensor, actual: torch.Tensor) -> str:
    if expected.numel() == 0:
        return ""
    wide = torch.complex128 if expected.is_complex() else torch.float64
    exact = not (expected.is_floating_point() or expected.is_complex())
    wrong = expected != actual if exact else _far(expected.to(wide), actual.to(wide), tolerance(expected.dtype))
    count = int(wrong.sum())
    if not count:
        return ""
    place = tuple(int(i) for i in wrong.nonzero()[0])
    values = f"{actual[place].item()} at {list(place)}, eager has {expected[place].item()}"
    return f"{count} of {expected.numel()} values differ: {values}"


def _far(expected: torch.Tensor, actual: torch.Tensor, bound: float) -> torch.Tensor:
    """Return which elements are too far from eager's: in an infinity or NaN, or by more than the bound."""
    finite = torch.isfinite(expected)
    scale = expected[finite].abs().max() if bool(finite.any()) else torch.zeros((), dtype=torch.float64)
    same = (expected == actual) | (torch.isnan(expected) & torch.isnan(actual))
    near = finite & torch.isfinite(actual) & ((expected - actual).abs() <= bound * scale)
    return ~(same | near)
