"""The comparison of compiled code's values with the values of the same graph run op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from conformance.triage.compiled.elements import far, largest, told, unlike, widened

#: Fused code may always differ by this multiple of the dtype's epsilon, relative to the tensor's largest value.
ROUNDING = 64
#: The distance of compiled code from float64 may be this multiple of eager code's largest distance.
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
    """Return a value in float64, None if it cannot be computed."""
    values = exact()
    found = values[index] if values is not None and index < len(values) else None
    return found if isinstance(found, torch.Tensor) else None


def _difference(expected: object, actual: object, exact: Callable[[], torch.Tensor | None]) -> str:
    """Return how a value differs, "" if it does not."""
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        same = expected == actual or (expected != expected and actual != actual)
        return "" if type(expected) is type(actual) and same else f"{actual!r}, expected {expected!r}"
    if found := unlike(expected, actual):
        return found
    if expected.device.type == "meta" or expected.numel() == 0:
        return ""
    return _values(_plain(expected), _plain(actual), exact)


def _plain(t: torch.Tensor) -> torch.Tensor:
    """Return the values of a tensor as a dense tensor on CPU. The tensor is strided or has ``to_dense``."""
    t = t.detach()
    return (t if t.layout == torch.strided else t.to_dense()).cpu().resolve_conj().resolve_neg()


def _values(expected: torch.Tensor, actual: torch.Tensor, exact: Callable[[], torch.Tensor | None]) -> str:
    """Return how values on CPU differ by more than rounding explains, "" if they do not."""
    if not (expected.is_floating_point() or expected.is_complex()):
        return told(expected, actual, expected != actual)
    epsilon = torch.finfo(expected.dtype).eps
    one, other = widened(expected), widened(actual)
    wrong = far(one, other, ROUNDING * epsilon * largest(one))
    if not bool(wrong.any()):
        return ""
    truth = exact()
    if truth is None or truth.shape != expected.shape:
        return told(expected, actual, wrong & far(one, other, epsilon**0.5 * largest(one)))
    right = _plain(truth).to(one.dtype)
    error = torch.where(torch.isfinite(one) & torch.isfinite(right), (one - right).abs(), 0.0).max()
    return told(expected, actual, wrong & far(right, other, FURTHER * float(error) + epsilon * largest(right)))
