"""The bound on the distance of a native result from the float64 result, and the elements beyond it. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance.judging import facts
from conformance.judging.bits import same_exactly

# A result is well-conditioned if half a unit in the last place of the arguments moves it by at most this many half
# units of its own. A product of two numbers is.
WELL_CONDITIONED = 2.0

# A componentwise bound counts the largest element of a result as at most this many times an element. For an element
# beyond that bound, the effect of rounding on the element is measured, which takes many calls.
NEIGHBOURS = 2.0**10

# Dtypes without a wider dtype to compute a reference in.
_WIDEST = (torch.float64, torch.complex128)

# Returns a number for each element of a widened reference.
OfEach = Callable[[torch.Tensor], torch.Tensor]
# Returns another reference; None if there is none.
Another = Callable[[], "torch.Tensor | None"]


@dataclass(frozen=True, slots=True)
class Further:
    """The further references for a result with an element beyond its bound. None: the reference is not used."""

    spread: OfEach | None = None  # how far rounding of the arguments alone moves each element, see conditioning.py
    own: OfEach | None = None  # how far CPU is from the float64 result for nearby arguments
    without_nan: Another | None = None  # the reference for arguments with zeros in place of NaN
    of_magnitudes: Another | None = None  # the float64 reference for the magnitudes of the arguments


NOTHING_FURTHER = Further()


@dataclass(frozen=True, slots=True)
class Closeness:
    """The bound on the distance of a native result from the float64 result.

    Bound per element: ``multiple`` × (CPU's own distance) + ``ulps`` × eps(``dtype``) × scale. The scale is the
    element's own magnitude. If the result ``accumulates``, the scale is the largest magnitude in the result × the
    growth of rounding errors over ``terms``: the square root of their number, or less for small floats, which have to
    be summed in float32, as CPU does. The scale is never less than ``magnitude``, which may be one number for each
    element.

    A small float has to be computed in float32 and rounded in a few ``steps``. It may be off by at most this many
    units in the last place of its own magnitude. The errors that come from other elements are relative to
    eps(float32).

    The errors of some algorithms, such as fast Fourier transforms, are relative to the largest element over all
    dimensions from ``first_dim`` on, such as the two of each matrix. The bound of a sum is *componentwise* instead
    (Higham, "Accuracy and Stability of Numerical Algorithms", 2002): the largest element counts as at most
    :data:`NEIGHBOURS` times the element's own magnitude, unless the element's spread is unknown.

    CPU's distance for *nearby* arguments shows the effect of rounding an intermediate number by half a unit. The
    first part of the bound is at least 2 × ``ulps``, and at least ``multiple``, times this distance.

    The *spread* of an element (conditioning.py) is how far rounding of the arguments moves it. For an ill-conditioned
    element, the scale is at least (magnitude + excess) × the growth of rounding errors. 2 × spread / eps is the
    magnitude whose half unit in the last place is the spread; the excess is the part of it beyond that of a
    well-conditioned element.
    """

    multiple: float = 4.0
    ulps: float = 4.0
    accumulates: bool = False
    terms: int = 1
    componentwise: bool = False
    magnitude: float | torch.Tensor = 0.0  # of the numbers whose small difference the result is
    dtype: torch.dtype | None = None  # the dtype of the computation; None: the result's own
    subnormals: bool = False  # the device keeps subnormal numbers; else the bound includes their whole range
    narrow: bool = False  # terms may be added up in the result's own dtype, a small float, if CPU does so
    first_dim: int = 0  # the first dimension over which the largest element is taken
    steps: float = 0.0  # a small float is computed in float32, rounded at most this often; 0: in its own dtype
    signed_zeros: bool = False  # a zero must have the sign of CPU's zero, if the float64 result has it too

    def least(self, dtype: torch.dtype) -> float:
        """Return the distance that is allowed for every result, however small."""
        info = torch.finfo(dtype)
        return self.ulps * float(info.tiny * info.eps if self.subnormals else info.tiny)

    def inside(self, eps: float) -> float:
        """Return the relative precision in which a result of relative precision ``eps`` is computed."""
        return min(eps, torch.finfo(torch.float32).eps) if self.steps else eps

    def unit(self, eps: float) -> float:
        """Return the allowed error of an element, relative to its own magnitude."""
        return eps * (min(self.ulps, self.steps) if self.inside(eps) < eps else self.ulps)


def beyond(
    expected: torch.Tensor,
    actual: torch.Tensor,
    wide: torch.Tensor | None,
    closeness: Closeness,
    further: Further = NOTHING_FURTHER,
) -> torch.Tensor:
    """Return elementwise whether ``actual`` is too far from the float64 result ``wide`` and the ``further`` references.

    Without a float64 result, CPU's own result (``expected``) takes its place. Bools must be equal, and so must
    integers that have no spread.
    """
    if not (expected.dtype.is_floating_point or expected.dtype.is_complex):
        wrong = ~same_exactly(expected, actual)
        if further.spread is not None and expected.dtype is not torch.bool and bool(wrong.any()):
            wrong &= ~_is_rounded(expected, actual, closeness, further.spread)
        return wrong
    reference = expected if wide is None or wide.shape != expected.shape else wide
    if further.spread is None and closeness.componentwise:
        closeness = replace(closeness, componentwise=False)
    wrong = _too_far(expected, actual, reference, closeness)
    if bool(wrong.any()):
        wrong &= ~same_exactly(expected, actual)
    if bool(wrong.any()):
        wrong &= _further_off(expected, actual, reference, closeness, further)
    if further.without_nan is not None:
        wrong |= _loses_nan(expected, actual, further.without_nan)
    return wrong | _other_zero(expected, actual, reference) if closeness.signed_zeros else wrong


def _further_off(
    expected: torch.Tensor, actual: torch.Tensor, reference: torch.Tensor, closeness: Closeness, further: Further
) -> torch.Tensor:
    """Return elementwise whether an element is wrong by the further references, too."""
    wrong, spread = torch.ones_like(actual, dtype=torch.bool), None
    if further.spread is not None:
        spread = further.spread(widen(reference))
        wrong = _too_far(expected, actual, reference, closeness, spread)
    if further.own is not None and bool(wrong.any()):
        wrong = _too_far(expected, actual, reference, closeness, spread, further.own(widen(reference)))
    if further.of_magnitudes is not None and closeness.accumulates and bool(wrong.any()):
        wrong &= ~_overflowed_in_part(expected, actual, further.of_magnitudes)
    return wrong


def _overflowed_in_part(expected: torch.Tensor, actual: torch.Tensor, of_magnitudes: Another) -> torch.Tensor:
    """Return elementwise whether only the device's sum is not finite, and a partial sum may be too large for its dtype.

    The partial sums depend on the order of the terms. Small floats have to be summed in float32, as CPU does.
    """
    lost = ~widen(actual).isfinite() & widen(expected).isfinite()
    total = of_magnitudes() if not expected.dtype.is_complex and bool(lost.any()) else None
    if total is None or total.shape != expected.shape:
        return torch.zeros_like(lost)
    summed_in = expected.dtype if expected.dtype is torch.float64 else torch.float32
    return lost & (widen(total) > torch.finfo(summed_in).max)


def _is_rounded(expected: torch.Tensor, actual: torch.Tensor, closeness: Closeness, spread_of: OfEach) -> torch.Tensor:
    """Return elementwise whether the spread explains the difference of integers, such as powers cut from float64."""
    ours, theirs = widen(actual), widen(expected)
    spread = spread_of(theirs)
    return (spread > 0) & ((ours - theirs).abs() <= closeness.ulps * 2 * spread)


def _loses_nan(expected: torch.Tensor, actual: torch.Tensor, without_nan: Another) -> torch.Tensor:
    """Return elementwise whether the device has an infinity where CPU has NaN because an argument has NaN.

    A NaN that comes from cancelling infinities does not count. Complex numbers do not count: a complex number of a
    NaN and an infinity is infinite.
    """
    lost = widen(expected).isnan() & widen(actual).isinf()
    if expected.dtype.is_complex or not bool(lost.any()):
        return torch.zeros_like(lost)
    again = without_nan()
    return lost & ~again.isnan() if again is not None and again.shape == lost.shape else torch.zeros_like(lost)


def _other_zero(expected: torch.Tensor, actual: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return elementwise whether a real zero lacks the sign that both CPU's zero and the reference's zero have."""
    if expected.dtype.is_complex:
        return torch.zeros(expected.shape, dtype=torch.bool)
    zero = (expected == 0) & (actual == 0) & (reference == 0)
    negative = expected.signbit()
    return zero & (negative == reference.signbit()) & (negative != actual.signbit())


# The fraction of the bound that :func:`near` uses, because its own arithmetic rounds, too.
_SAFE = 0.99


def near(expected: torch.Tensor, actual: torch.Tensor, closeness: Closeness) -> bool:
    """Return whether no element is :func:`beyond` its bound, whatever the float64 result is, so that none is needed.

    Let u be an element's own unit. From |actual - expected| <= u x |expected| follows |actual - true| <= u x |true| +
    (1 + u) x |expected - true|, which is within the bound if ``multiple`` >= 1 + u. False does not mean that an
    element is beyond its bound.
    """
    if not (expected.dtype.is_floating_point or expected.dtype.is_complex):
        return False
    unit = closeness.unit(torch.finfo(closeness.dtype or expected.dtype).eps)
    if closeness.multiple < 1 + unit:
        return False
    ours, theirs = widen(actual), widen(expected)
    if closeness.signed_zeros and bool(_other_zero(expected, actual, expected).any()):
        return False
    bound = _magnitude(theirs).mul_(unit).add_(closeness.least(expected.dtype)).mul_(_SAFE)
    within = (ours - theirs).abs() < bound
    return bool(within.all()) or bool((within | same_exactly(expected, actual)).all())


# If two numbers differ by more than this fraction of the larger, neither is a rounding of the other in any dtype.
_GROSS = 1 / 8


def far_apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two floating or complex tensors differ in an element by more than an eighth of the larger value.

    An infinite element differs from a finite element by more, unless the finite element is so large that a partial
    sum may have overflowed.
    """
    if one.shape != other.shape or not (one.dtype.is_floating_point or one.dtype.is_complex):
        return False
    a, b = widen(one), widen(other)
    info = torch.finfo(one.dtype)
    finite = torch.minimum(a.abs(), b.abs())
    overflowed = (a.isinf() & b.isfinite()) | (b.isinf() & a.isfinite())
    differ = (a - b).abs() > _GROSS * torch.maximum(a.abs(), b.abs())
    return bool((differ | (overflowed & (finite < info.max * info.eps))).any())


def _too_far(
    expected: torch.Tensor,
    actual: torch.Tensor,
    reference: torch.Tensor,
    closeness: Closeness,
    spread: torch.Tensor | None = None,
    nearby: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return elementwise whether an element is further from the reference than allowed.

    ``nearby``: CPU's own distance for nearby arguments.

    NaN must stay NaN, and infinities must agree, unless CPU itself overflowed on the way to a finite result: the
    result of a sum that overflows depends on the order of its terms.
    """
    ours, theirs, true = widen(actual), widen(expected), widen(reference)
    own = (theirs - true).abs()
    finite = not expected.dtype.is_complex and are_finite(own) and are_finite(ours)
    if not finite:
        true = torch.where(theirs.isfinite() & ~true.isfinite(), theirs, true)
        own = (theirs - true).abs()
        own = torch.where(own.isfinite(), own, torch.zeros_like(own))
    eps = torch.finfo(closeness.dtype or expected.dtype).eps
    magnitude = _magnitude(true)
    magnitude = magnitude if finite else torch.where(true.isfinite(), magnitude, torch.zeros_like(own))
    narrow = closeness.narrow and bool((own > eps * magnitude).any())  # CPU's own result is rounded more than once
    allowed = closeness.multiple * own
    if nearby is not None:
        allowed = torch.maximum(allowed, max(closeness.multiple, 2 * closeness.ulps) * nearby)
    allowed += _rounding(magnitude, closeness, eps, narrow, spread) + closeness.least(expected.dtype)
    ok = ((ours - true).abs() <= allowed) | (ours == true) | (ours == theirs)
    ok |= same_exactly(actual, reference.to(expected.dtype))  # a reference beyond the dtype is infinite in it
    return ~(ok if finite else ok | _right_beyond(expected, ours, theirs, true, reference, closeness, allowed))


def are_finite(numbers: torch.Tensor) -> bool:
    """Return whether all real numbers and their sum are finite. This takes a tenth of the time of ``isfinite``."""
    return math.isfinite(float(numbers.sum()))


def _right_beyond(
    expected: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, reference: torch.Tensor,
    closeness: Closeness, allowed: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return elementwise whether NaN, an infinite or a complex number is right although not within ``allowed``."""
    eps = torch.finfo(closeness.dtype or expected.dtype).eps
    ok = ours.isnan() & (true.isnan() | theirs.isnan())
    known = reference is not expected or expected.dtype not in _WIDEST
    if not known:
        info = torch.finfo(expected.dtype)
        ok |= _at_the_edge(ours, theirs, info.max * (info.eps if closeness.accumulates else 0.5))
    if closeness.accumulates:
        ok |= _lost_in_sum(ours, theirs, true, known)
    else:
        ok |= _overflowed(ours, theirs, true, torch.finfo(expected.dtype).max)
    if expected.dtype.is_complex:
        ok |= _parts_agree(ours, true, widen(reference.to(expected.dtype)), allowed, closeness.unit(eps))
    return ok


def _rounding(
    magnitude: torch.Tensor, closeness: Closeness, eps: float, narrow: bool, spread: torch.Tensor | None
) -> torch.Tensor:
    """Return elementwise the distance that rounding may cause, see :class:`Closeness`."""
    most, unit, inside = torch.finfo(torch.float64).max, closeness.unit(eps), closeness.inside(eps)
    scale = magnitude
    if closeness.accumulates and magnitude.numel():
        together = tuple(range(magnitude.dim()))[closeness.first_dim :]
        largest = magnitude.amax(together, keepdim=True).expand_as(magnitude) if together else magnitude
        if closeness.componentwise:
            own = torch.minimum(largest, NEIGHBOURS * magnitude)
            largest = own if spread is None else torch.where(spread.isnan(), largest, own)
        scale = largest * growth(inside, closeness.terms, narrow)
    if scale is magnitude and not isinstance(closeness.magnitude, torch.Tensor) and not closeness.magnitude:
        allowed = max(unit, closeness.ulps * inside) * magnitude
    else:
        least = torch.as_tensor(closeness.magnitude, dtype=torch.float64)
        scale = torch.maximum(scale.clamp_max(most), least)
        allowed = torch.maximum(unit * magnitude, closeness.ulps * inside * scale)
    if spread is not None:
        excess = (2 * spread.nan_to_num(0.0) / eps - WELL_CONDITIONED * magnitude).clamp_min(0)
        allowed = torch.maximum(allowed, unit * (magnitude + excess) * growth(eps, closeness.terms, narrow))
    return allowed


def _at_the_edge(ours: torch.Tensor, theirs: torch.Tensor, least: float) -> torch.Tensor:
    """Return elementwise whether one side is infinite, and the other, of its sign, has at least magnitude ``least``.

    Some of CPU's functions overflow a little early. A product that is too large becomes infinite when it is rounded,
    but a fused multiply-add does not round it, and may return a finite sum. Such a sum is seldom below eps times the
    dtype's largest number. No dtype wider than float64 shows which side is right.
    """
    both = torch.minimum(ours.abs(), theirs.abs()) >= least
    return both & (torch.sgn(ours) == torch.sgn(theirs)) & (ours.isinf() ^ theirs.isinf())


def _overflowed(ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, largest: float) -> torch.Tensor:
    """Return elementwise whether both sides overflowed on the way to a number of at most ``largest``."""
    return (true.abs() <= largest) & ~theirs.isfinite() & ~ours.isfinite()


def _parts_agree(
    ours: torch.Tensor, true: torch.Tensor, rounded: torch.Tensor, allowed: torch.Tensor, unit: float
) -> torch.Tensor:
    """Return elementwise whether both parts of an infinite complex number equal the rounded ones or are near them.

    ``allowed`` belongs to the magnitude of ``true``. If this magnitude is infinite, a part may be off by ``unit`` of
    itself.
    """
    parts, wanted, exact = map(torch.view_as_real, (ours, true, rounded))
    most = torch.where(true.isfinite().unsqueeze(-1), allowed.unsqueeze(-1), unit * wanted.abs())
    near = ((parts - wanted).abs() <= most) | (parts == exact)
    return near.all(-1) & ours.isinf()


def _lost_in_sum(ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, known: bool) -> torch.Tensor:
    """Return elementwise whether a sum is not finite on both sides, in a way that depends on the order of its terms.

    This is so where ``true`` is finite, and may be so where no wider dtype gives the true result (not ``known``). The
    device's sum may be infinite where CPU's is NaN: in a running mean, one infinity cancels itself.
    """
    may_be = theirs.isnan() & ours.isinf()
    may_be |= true.isfinite() if known else torch.ones_like(may_be)
    return may_be & ~theirs.isfinite() & ~ours.isfinite()


#: Beyond this many terms, the rounding errors of a float64 sum do not count as independent.
MANY_TERMS = 1 << 16


def growth(eps: float, terms: int, narrow: bool = False) -> float:
    """Return the units in the last place, of relative size ``eps``, by which a sum of ``terms`` terms may be off.

    Small floats have to be summed in float32, unless the sum is ``narrow``. Errors of CPU's running sums of equal
    terms add up. A wider reference does not have these errors, but float64 has no wider reference.
    """
    if terms > MANY_TERMS and eps <= torch.finfo(torch.float64).eps:
        return float(terms)
    wider = 1.0 if narrow else min(1.0, torch.finfo(torch.float32).eps / eps)
    return float(max(1.0, max(terms, 1) ** 0.5 * wider))


def _magnitude(wide: torch.Tensor) -> torch.Tensor:
    """Return the absolute values, limited to the largest float64: finite parts may have an infinite absolute value."""
    return wide.abs().clamp_max_(torch.finfo(torch.float64).max)


def widen(t: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in float64 or complex128, without conj and neg bits."""
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64)


def bound(
    dtype: torch.dtype, closeness: Closeness, index: tuple[int, ...] = (), *, spread: bool = False
) -> dict[str, Any]:
    """Return the bound of an element as facts. ``spread``: whether an ill-conditioned element widens it."""
    magnitude, eps = closeness.magnitude, torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 1.0
    of_element = float(magnitude[index]) if isinstance(magnitude, torch.Tensor) else magnitude
    return {
        "exact": False, "multiple": closeness.multiple, "ulps": closeness.ulps, "dtype": facts.value(dtype),
        "magnitude": facts.value(of_element), "accumulates": closeness.accumulates, "terms": closeness.terms,
        "neighbours": NEIGHBOURS if closeness.componentwise and spread else 0.0,
        "first_dim": closeness.first_dim, "steps": closeness.unit(eps) / eps if closeness.inside(eps) < eps else 0.0,
        "spread": spread, "signed_zeros": closeness.signed_zeros,
    }  # fmt: skip
