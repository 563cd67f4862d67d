"""How far a native result may be from the float64 one: elementwise, which elements are beyond their bound. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance.judging import facts
from conformance.judging.bits import same_exactly

# A result is well-conditioned if half a unit in the last place of the arguments moves it by at most so many half units
# of its own: a product of two does.
WELL_CONDITIONED = 2.0

# A componentwise bound takes the largest element of a result for at most so many times an element. Where that does not
# suffice, it is asked how far rounding moves the element, which takes many calls.
NEIGHBOURS = 2.0**10

# Dtypes that have no wider one to compute a reference in.
_WIDEST = (torch.float64, torch.complex128)

# Returns a number for each element of a widened reference.
OfEach = Callable[[torch.Tensor], torch.Tensor]
# Returns another reference; None if there is none.
Another = Callable[[], "torch.Tensor | None"]


@dataclass(frozen=True, slots=True)
class Further:
    """What is asked about a result of which an element is beyond its bound. None: it is not asked."""

    spread: OfEach | None = None  # how far rounding of the arguments alone moves each element, see conditioning.py
    own: OfEach | None = None  # how far CPU is from the float64 result for nearby arguments
    without_nan: Another | None = None  # the reference for arguments with zeros in place of NaN
    of_magnitudes: Another | None = None  # the float64 reference for the magnitudes of the arguments


NOTHING_FURTHER = Further()


@dataclass(frozen=True, slots=True)
class Closeness:
    """How far a native result may be from the float64 one.

    Bound per element: ``multiple`` × (the CPU's own distance) + ``ulps`` × eps(``dtype``) × scale, where scale is the
    element's own magnitude or, for a result that accumulates, the largest magnitude in it × what rounding adds up to
    over ``terms``: their square root; less for small floats, which are to be summed in float32, as CPU does. Scale is
    never less than ``magnitude``, which may be one number for each element.

    A small float is to be computed in float32 and rounded in a few ``steps``. It may be off by at most so many units
    in the last place of its own magnitude, and what comes from other elements is relative to eps(float32).

    The errors of some algorithms, such as fast Fourier transforms, are relative to the largest element over all
    dimensions from ``first_dim`` on, such as the two of each matrix. A sum has no such excuse: its bound is
    *componentwise* (Higham, "Accuracy and Stability of Numerical Algorithms", 2002). The largest element then counts as
    at most :data:`NEIGHBOURS` times the element's own, unless its spread is not known.

    CPU's distance for *nearby* arguments is what half a unit of what is computed on the way makes of a result. The
    first part of the bound is at least 2 x ``ulps`` of these.

    Of an ill-conditioned element, which rounding of the arguments moves by its *spread* (conditioning.py), scale is at
    least (magnitude + excess) x what rounding adds up to. The excess is 2 x spread / eps, the magnitude whose half unit
    in the last place is the spread, beyond that of a well-conditioned element.
    """

    multiple: float = 4.0
    ulps: float = 4.0
    accumulates: bool = False
    terms: int = 1
    componentwise: bool = False
    magnitude: float | torch.Tensor = 0.0  # of what the result is a small difference of
    dtype: torch.dtype | None = None  # what is computed in; None is the result's own
    subnormals: bool = False  # the device keeps subnormal numbers; else their whole range is allowed on top
    narrow: bool = False  # terms may be added up in the result's own dtype, a small float, if CPU does so
    first_dim: int = 0  # the first dimension over which the largest element is taken
    steps: float = 0.0  # a small float is rounded so often at most, and computed in float32; 0: in its own dtype
    signed_zeros: bool = False  # a zero has the sign of CPU's, where CPU gives it in double precision too

    def least(self, dtype: torch.dtype) -> float:
        """Return what is allowed however small a result is."""
        info = torch.finfo(dtype)
        return self.ulps * float(info.tiny * info.eps if self.subnormals else info.tiny)

    def inside(self, eps: float) -> float:
        """Return the relative precision in which a result of relative precision ``eps`` is computed."""
        return min(eps, torch.finfo(torch.float32).eps) if self.steps else eps

    def unit(self, eps: float) -> float:
        """Return the part of its own magnitude that an element may be off by."""
        return eps * (min(self.ulps, self.steps) if self.inside(eps) < eps else self.ulps)


def beyond(
    expected: torch.Tensor,
    actual: torch.Tensor,
    wide: torch.Tensor | None,
    closeness: Closeness,
    further: Further = NOTHING_FURTHER,
) -> torch.Tensor:
    """Return elementwise what is too far from the float64 result ``wide`` and from the ``further`` references.

    Without a float64 result the CPU's own (``expected``) stands in for it. Bools are equal, and so are integers that
    have no spread.
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
    """Return elementwise what is wrong by the further references too."""
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
    """Return elementwise what is not finite where CPU is, because a part of the sum may be too large for its dtype.

    Which parts there are depends on the order of the terms. Small floats are to be summed in float32, as CPU does.
    """
    lost = ~widen(actual).isfinite() & widen(expected).isfinite()
    total = of_magnitudes() if not expected.dtype.is_complex and bool(lost.any()) else None
    if total is None or total.shape != expected.shape:
        return torch.zeros_like(lost)
    summed_in = expected.dtype if expected.dtype is torch.float64 else torch.float32
    return lost & (widen(total) > torch.finfo(summed_in).max)


def _is_rounded(expected: torch.Tensor, actual: torch.Tensor, closeness: Closeness, spread_of: OfEach) -> torch.Tensor:
    """Return elementwise whether the spread explains two integers that differ, as powers cut from float64."""
    ours, theirs = widen(actual), widen(expected)
    spread = spread_of(theirs)
    return (spread > 0) & ((ours - theirs).abs() <= closeness.ulps * 2 * spread)


def _loses_nan(expected: torch.Tensor, actual: torch.Tensor, without_nan: Another) -> torch.Tensor:
    """Return elementwise what is infinite where CPU has NaN, because an argument has NaN and not as infinities cancel.

    Complex numbers of a NaN and an infinity count as infinite, so they are left out.
    """
    lost = widen(expected).isnan() & widen(actual).isinf()
    if expected.dtype.is_complex or not bool(lost.any()):
        return torch.zeros_like(lost)
    again = without_nan()
    return lost & ~again.isnan() if again is not None and again.shape == lost.shape else torch.zeros_like(lost)


def _other_zero(expected: torch.Tensor, actual: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return elementwise which real zeros lack the sign that both CPU's and the reference's zero have."""
    if expected.dtype.is_complex:
        return torch.zeros(expected.shape, dtype=torch.bool)
    zero = (expected == 0) & (actual == 0) & (reference == 0)
    negative = expected.signbit()
    return zero & (negative == reference.signbit()) & (negative != actual.signbit())


# Part of the bound that :func:`near` uses: its own arithmetic rounds as well.
_SAFE = 0.99


def near(expected: torch.Tensor, actual: torch.Tensor, closeness: Closeness) -> bool:
    """Whether nothing is :func:`beyond` its bound whatever numbers the float64 result holds, so that none is needed.

    With u, an element's own unit: from |actual - expected| <= u x |expected| follows |actual - true| <= u x |true| +
    (1 + u) x |expected - true|, which is within the bound if ``multiple`` >= 1 + u. False says nothing.
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


# The part of the larger of two numbers by which they differ if one is no rounding of the other in any dtype.
_GROSS = 1 / 8


def far_apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an element of two floating or complex tensors differs by more than an eighth of the larger of the two.

    An infinite element does so from a finite one, unless that is so large that a part of its sum may have overflowed.
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
    """Return elementwise what is further from the reference than allowed.

    ``nearby``: CPU's own distance for nearby arguments.

    Not-a-number must stay so, and infinities must agree, but where CPU itself left its dtype's range on the way to a
    finite result: how a sum that overflows ends depends on the order of its terms.
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
    narrow = closeness.narrow and bool((own > eps * magnitude).any())  # CPU's own rounds more than once
    allowed = closeness.multiple * own
    if nearby is not None:
        allowed = torch.maximum(allowed, max(closeness.multiple, 2 * closeness.ulps) * nearby)
    allowed += _rounding(magnitude, closeness, eps, narrow, spread) + closeness.least(expected.dtype)
    ok = ((ours - true).abs() <= allowed) | (ours == true) | (ours == theirs)
    ok |= same_exactly(actual, reference.to(expected.dtype))  # beyond the dtype's largest number, that is not finite
    return ~(ok if finite else ok | _right_beyond(expected, ours, theirs, true, reference, closeness, allowed))


def are_finite(numbers: torch.Tensor) -> bool:
    """Whether all real numbers and their sum are finite. It takes a tenth of the time of ``isfinite``."""
    return math.isfinite(float(numbers.sum()))


def _right_beyond(
    expected: torch.Tensor, ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, reference: torch.Tensor,
    closeness: Closeness, allowed: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return elementwise what is right although not within ``allowed``, as NaN, an infinite or a complex number is."""
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
    """Return elementwise what rounding may amount to, see :class:`Closeness`."""
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
    """Return elementwise whether one side is infinite, and the other one of its sign and of at least ``least``.

    Some of CPU's functions overflow a little early. And a product that is too large is infinite if it is rounded, but a
    fused multiply-add does not round it, and may return a finite sum. Such a sum is seldom below eps times the dtype's
    largest number. Nothing wider than float64 says which side is right.
    """
    both = torch.minimum(ours.abs(), theirs.abs()) >= least
    return both & (torch.sgn(ours) == torch.sgn(theirs)) & (ours.isinf() ^ theirs.isinf())


def _overflowed(ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, largest: float) -> torch.Tensor:
    """Return elementwise whether both sides left the range, up to ``largest``, on the way to a number within it."""
    return (true.abs() <= largest) & ~theirs.isfinite() & ~ours.isfinite()


def _parts_agree(
    ours: torch.Tensor, true: torch.Tensor, rounded: torch.Tensor, allowed: torch.Tensor, unit: float
) -> torch.Tensor:
    """Return elementwise whether a complex number is infinite in a part that is so in its dtype, and near in the other.

    ``allowed`` belongs to the magnitude of ``true``; if that is infinite, a part may be off by ``unit`` of itself.
    """
    parts, wanted, exact = map(torch.view_as_real, (ours, true, rounded))
    most = torch.where(true.isfinite().unsqueeze(-1), allowed.unsqueeze(-1), unit * wanted.abs())
    near = ((parts - wanted).abs() <= most) | (parts == exact)
    return near.all(-1) & ours.isinf()


def _lost_in_sum(ours: torch.Tensor, theirs: torch.Tensor, true: torch.Tensor, known: bool) -> torch.Tensor:
    """Return elementwise whether a sum is not finite on both sides, in a way that depends on the order of its terms.

    It is so where ``true`` is finite, and may be where no wider dtype says what is true (not ``known``). A sum that
    CPU makes NaN may be infinite: by a running mean, one infinity cancels itself.
    """
    may_be = theirs.isnan() & ours.isinf()
    may_be |= true.isfinite() if known else torch.ones_like(may_be)
    return may_be & ~theirs.isfinite() & ~ours.isfinite()


#: Beyond so many terms, the rounding errors of a float64 sum are not taken for independent.
MANY_TERMS = 1 << 16


def growth(eps: float, terms: int, narrow: bool = False) -> float:
    """Return units in the last place, of relative size ``eps``, that a sum of so many terms may be off by.

    Small floats are to be summed in float32, unless the sum is ``narrow``.
    Errors of CPU's running sums of equal terms add up. A wider reference does not have them; for float64 there is none.
    """
    if terms > MANY_TERMS and eps <= torch.finfo(torch.float64).eps:
        return float(terms)
    wider = 1.0 if narrow else min(1.0, torch.finfo(torch.float32).eps / eps)
    return float(max(1.0, max(terms, 1) ** 0.5 * wider))


def _magnitude(wide: torch.Tensor) -> torch.Tensor:
    """Return the absolute values, finite for a complex number of finite parts too."""
    return wide.abs().clamp_max_(torch.finfo(torch.float64).max)


def widen(t: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in float64 or complex128, without conj and neg bits."""
    if t.is_conj() or t.is_neg():
        t = t.resolve_conj().resolve_neg()
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64)


def bound(
    dtype: torch.dtype, closeness: Closeness, index: tuple[int, ...] = (), *, spread: bool = False
) -> dict[str, Any]:
    """Return the bound of an element as facts; ``spread``: widened where an element is ill-conditioned."""
    magnitude, eps = closeness.magnitude, torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 1.0
    of_element = float(magnitude[index]) if isinstance(magnitude, torch.Tensor) else magnitude
    return {
        "exact": False, "multiple": closeness.multiple, "ulps": closeness.ulps, "dtype": facts.value(dtype),
        "magnitude": facts.value(of_element), "accumulates": closeness.accumulates, "terms": closeness.terms,
        "neighbours": NEIGHBOURS if closeness.componentwise and spread else 0.0,
        "first_dim": closeness.first_dim, "steps": closeness.unit(eps) / eps if closeness.inside(eps) < eps else 0.0,
        "spread": spread, "signed_zeros": closeness.signed_zeros,
    }  # fmt: skip
