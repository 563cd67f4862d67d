"""Values of compiled code against those of the same graph run op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

#: Units of the last place, relative to a tensor's largest value, by which fused code may differ in every case.
ROUNDING = 64
#: How much further from float64 than eager code compiled code may be.
FURTHER = 4.0
Exact = Callable[[], "Sequence[object] | None"]  # the values in float64, if they can be computed


def first_difference(
    names: Sequence[str], expected: Sequence[object], actual: Sequence[object], exact: Exact = lambda: None
) -> tuple[str, str]:
    """Return the name of the first value that differs, and how; ("", "") if none does."""
    if len(expected) != len(actual):
        return "results", f"{len(actual)} values, expected {len(expected)}"
    for i, (name, one, other) in enumerate(zip(names, expected, actual)):
        if found := _difference(one, other, partial(_at, exact, i)):
            return name, found
    return "", ""


def _at(exact: Exact, index: int) -> torch.Tensor | None:
    values = exact()
    found = values[index] if values is not None and index < len(values) else None
    return found if isinstance(found, torch.Tensor) else None


def _difference(expected: object, actual: object, exact: Callable[[], torch.Tensor | None]) -> str:
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        same = expected == actual or (expected != expected and actual != actual)
        return "" if type(expected) is type(actual) and same else f"{actual!r}, expected {expected!r}"
    for what, one, other in zip(("shape", "dtype", "device"), _facts(expected), _facts(actual)):
        if one != other:
            return f"{what} {other}, expected {one}"
    if expected.device.type == "meta" or expected.numel() == 0:
        return ""
    return _values(_plain(expected), _plain(actual), exact)


def _facts(t: torch.Tensor) -> tuple[str, ...]:
    return str(list(t.shape)), str(t.dtype), t.device.type


def _plain(t: torch.Tensor) -> torch.Tensor:
    """Return values on CPU, dense. The tensor may be of any layout that has ``to_dense``."""
    t = t.detach()
    return (t if t.layout == torch.strided else t.to_dense()).cpu().resolve_conj().resolve_neg()


def _values(expected: torch.Tensor, actual: torch.Tensor, exact: Callable[[], torch.Tensor | None]) -> str:
    if not (expected.is_floating_point() or expected.is_complex()):
        return _told(expected, actual, expected != actual)
    epsilon = torch.finfo(expected.dtype).eps
    wide = torch.complex128 if expected.is_complex() else torch.float64
    one, other = expected.to(wide), actual.to(wide)
    wrong = _far(one, other, ROUNDING * epsilon * _largest(one))
    if not bool(wrong.any()):
        return ""
    truth = exact()
    if truth is None or truth.shape != expected.shape:
        return _told(expected, actual, wrong & _far(one, other, epsilon**0.5 * _largest(one)))
    right = _plain(truth).to(wide)
    error = torch.where(torch.isfinite(one) & torch.isfinite(right), (one - right).abs(), 0.0).max()
    return _told(expected, actual, wrong & _far(right, other, FURTHER * float(error) + epsilon * _largest(right)))


def _largest(t: torch.Tensor) -> float:
    finite = t[torch.isfinite(t)].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _far(expected: torch.Tensor, actual: torch.Tensor, bound: float) -> torch.Tensor:
    """Return which elements differ by more than a bound, or in an infinity or NaN."""
    same = (expected == actual) | (torch.isnan(expected) & torch.isnan(actual))
    near = torch.isfinite(expected) & torch.isfinite(actual) & ((expected - actual).abs() <= bound)
    return ~(same | near)


def _told(expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor) -> str:
    count = int(wrong.sum())
    if not count:
        return ""
    place = tuple(int(i) for i in wrong.nonzero()[0])
    values = f"{actual[place].item()} at {list(place)}, expected {expected[place].item()}"
    return f"{count} of {expected.numel()} values differ: {values}"
