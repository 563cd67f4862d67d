"""Comparison of an expected and an actual tensor on CPU, with findings as results. Pure: runs no op under test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance.judging import facts, patterns
from conformance.judging.bits import altered, real, same_exactly
from conformance.judging.closeness import NOTHING_FURTHER, Closeness, Further, beyond, bound, widen
from conformance.records import Mismatch
from conformance.torch_versions import has_no_memory
from conformance.vocabulary import Check, Fact


def metadata(expected: torch.Tensor, actual: torch.Tensor, subject: str, *, strided: bool = True) -> Mismatch | None:
    """Return the first property in ``_METADATA`` that differs.

    On a device whose tensors are not ``strided``, a row-major tensor without offset is right whatever CPU's strides
    and offset are.
    """
    if _same_metadata(expected, actual):
        return None
    anywhere = not strided and actual.is_contiguous() and actual.storage_offset() == 0
    for what, check, of in _METADATA:
        if anywhere and check in (Check.STRIDE, Check.OFFSET):
            continue
        want, got = of(expected), of(actual)
        if want != got:
            found = {"kind": Fact.METADATA.value, "what": what, "device": facts.value(got), "cpu": facts.value(want)}
            return Mismatch(check, subject, found)
    return None


def _same_metadata(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether no property in ``_METADATA`` differs. False does not mean that any does."""
    return (
        a.dtype is b.dtype
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
        and a.is_conj() == b.is_conj()
        and a.is_neg() == b.is_neg()
        and has_no_memory(a) == has_no_memory(b)
    )


# The compared properties of a tensor besides its values. Strides and offset of a tensor without elements are
# undefined.
_METADATA: tuple[tuple[str, Check, Callable[[torch.Tensor], object]], ...] = (
    ("dtype", Check.DTYPE, lambda t: t.dtype),
    ("shape", Check.SHAPE, lambda t: tuple(t.shape)),
    ("stride", Check.STRIDE, lambda t: t.stride() if t.numel() else ()),
    ("offset", Check.OFFSET, lambda t: t.storage_offset() if t.numel() else 0),
    ("conj", Check.VALUE, torch.Tensor.is_conj),
    ("neg", Check.VALUE, torch.Tensor.is_neg),
    ("zero", Check.VALUE, has_no_memory),
)


def exact(
    expected: torch.Tensor,
    actual: torch.Tensor,
    subject: str,
    signed_zeros: bool = True,
    stale: torch.Tensor | None = None,
    sources: Sequence[torch.Tensor] = (),
) -> Mismatch | None:
    """Return a mismatch if bits differ (NaN equals NaN). Its facts name the first wrong index and both values.

    Without ``signed_zeros``, -0.0 equals 0.0. ``stale``: the content of the memory of ``actual`` before the call, if
    known. ``sources``: the arguments from which the op moves numbers. Their signalling NaN must arrive unchanged.
    """
    wrong = differing(expected, actual, signed_zeros, sources)
    if not bool(wrong.any()):
        return None
    return _first(wrong, expected, actual, None, subject, {"exact": True, "signed_zeros": signed_zeros}, stale)


def close(
    expected: torch.Tensor,
    actual: torch.Tensor,
    wide: torch.Tensor | None,
    closeness: Closeness,
    subject: str,
    further: Further = NOTHING_FURTHER,
    stale: torch.Tensor | None = None,
) -> Mismatch | None:
    """Return a mismatch if ``actual`` is further from the float64 result ``wide`` than the bound allows.

    ``expected`` is CPU's own result. See :func:`conformance.judging.closeness.beyond`; for ``stale``, see
    :func:`exact`.
    """
    reference = expected if wide is None or wide.shape != expected.shape else wide
    wrong = beyond(expected, actual, wide, closeness, further)
    if not bool(wrong.any()):
        return None
    if not (expected.dtype.is_floating_point or expected.dtype.is_complex):
        allowed = {"exact": True, "signed_zeros": True}
        if further.spread is not None and expected.dtype is not torch.bool:
            allowed["spread"] = True
        return _first(wrong, expected, actual, None, subject, allowed, stale)
    spread = further.spread is not None
    allowed = bound(closeness.dtype or expected.dtype, closeness, _index(wrong), spread=spread)
    return _first(wrong, expected, actual, reference, subject, allowed, stale)


def differing(
    expected: torch.Tensor, actual: torch.Tensor, signed_zeros: bool = True, sources: Sequence[torch.Tensor] = ()
) -> torch.Tensor:
    """Return elementwise whether :func:`exact` finds an element wrong."""
    same = same_exactly(expected, actual)
    if not signed_zeros:
        same |= (real(expected) == real(actual)).all(-1) if expected.dtype.is_complex else expected == actual
    return ~same | altered(expected, actual, sources) if sources else ~same


def _first(
    wrong: torch.Tensor,
    expected: torch.Tensor,
    actual: torch.Tensor,
    reference: torch.Tensor | None,
    subject: str,
    allowed: dict[str, Any],
    stale: torch.Tensor | None,
) -> Mismatch:
    """Return the finding for the first wrong element in row-major order."""
    index = _index(wrong)
    cpu, device = expected[index].item(), actual[index].item()
    found: dict[str, Any] = {
        "kind": Fact.ELEMENTS.value, "wrong": int(wrong.sum()), "of": expected.numel(), "index": list(index),
        "device": facts.value(device), "cpu": facts.value(cpu), "dtype": facts.value(expected.dtype),
        **_distance(cpu, device, expected.dtype), "bound": allowed,
        "pattern": _pattern(wrong, expected, actual, stale),
    }  # fmt: skip
    if reference is not None and reference is not expected:
        found["float64"] = facts.value(reference[index].item())
    return Mismatch(Check.VALUE, subject, found)


def _index(wrong: torch.Tensor) -> tuple[int, ...]:
    """Return the index of the first wrong element in row-major order."""
    return tuple(int(i) for i in torch.nonzero(wrong)[0]) if wrong.dim() else ()


def _pattern(
    wrong: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, stale: torch.Tensor | None
) -> dict[str, Any]:
    plain = None if stale is None else _plain(stale)
    return patterns.pattern(wrong, _plain(expected), _plain(actual), plain)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in a dtype that all operations support."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        return widen(tensor)
    return tensor if tensor.dtype is torch.bool else tensor.to(torch.int64)


def _distance(cpu: Any, device: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Return the distance of two values, absolute and, for floating dtypes, in ULP of the CPU's value."""
    if isinstance(cpu, bool):
        return {"absolute": 1}
    absolute = _size(device - cpu)
    if not (dtype.is_floating_point or dtype.is_complex):
        return {"absolute": facts.value(absolute)}
    unit = torch.finfo(dtype).eps * max(_size(cpu), torch.finfo(dtype).tiny) if cpu == cpu else float("nan")
    ulps = absolute / unit if unit else float("inf")
    return {"absolute": facts.value(absolute), "ulp": facts.value(ulps)}


def _size(number: Any) -> Any:
    """Return the absolute value of a number, infinite for a complex one whose size is beyond every double."""
    return math.hypot(number.real, number.imag) if isinstance(number, complex) else abs(number)


def untouched(
    before: torch.Tensor,
    cpu: torch.Tensor,
    after: torch.Tensor,
    reached: torch.Tensor,
    written: bool,
    subject: str,
) -> Mismatch | None:
    """Return a mismatch of device bytes ``after`` the call that equal neither those ``before`` it nor ``cpu``'s.

    Such bytes outside the views fail the check UNTOUCHED. Inside the view of an argument that the op may not write,
    they fail the check MUTATION. In a ``written`` argument, they are compared as values elsewhere. ``reached`` is a
    bool mask of the bytes inside the views.
    """
    changed = (after != cpu) & (after != before)
    outside = changed & ~reached
    if bool(outside.any()):
        return _bytes(Check.UNTOUCHED, outside, before, after, subject)
    if not written and bool(changed.any()):
        return _bytes(Check.MUTATION, changed, before, after, subject)
    return None


def _bytes(check: Check, wrong: torch.Tensor, before: torch.Tensor, after: torch.Tensor, subject: str) -> Mismatch:
    first = int(torch.nonzero(wrong)[0])
    found = {
        "kind": Fact.BYTES.value, "bytes": int(wrong.sum()), "byte": first, "of": before.numel(),
        "before": int(before[first]), "device": int(after[first]),
    }  # fmt: skip
    return Mismatch(check, subject, found)
