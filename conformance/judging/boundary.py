"""Search for the sizes at which a case fails: the smallest one, and the rule that the failing sizes follow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from conformance.records import Boundary

Fails = Callable[[int], bool]

_AROUND = 70  # sizes tried from the smallest failing one on, to tell a rule from a threshold
_MODULI = (2, 4, 8, 16, 32, 64)


class _OutOfTimeError(Exception):
    pass


def search(fails: Fails, size: int, in_time: Callable[[], bool] = lambda: True) -> Boundary | None:
    """Return the smallest failing size, and the rule of the failing sizes, for a case that fails at ``size``.

    The smallest size is exact if all larger sizes fail, or if failure depends on the remainder of the size. Calls
    ``fails`` about a hundred times, and never after ``in_time`` returned False: then the result has no rule, or is
    None if the smallest size is not known yet.
    """
    tried: dict[int, bool] = {size: True}

    def asked(n: int) -> bool:
        if n not in tried:
            if not in_time():
                raise _OutOfTimeError
            tried[n] = fails(n)
        return tried[n]

    try:
        smallest = _smallest(asked, size)
    except _OutOfTimeError:
        return None
    passes = max((n for n, failed in tried.items() if not failed and n < smallest), default=0)
    around = range(smallest + 1, min(smallest + _AROUND, size))
    with contextlib.suppress(_OutOfTimeError):
        for n in around:
            asked(n)
    above = {n: failed for n, failed in tried.items() if n >= smallest}
    modulus, multiples = _rule(above) if all(n in tried for n in around) else (0, False)
    passing = sorted(n for n, failed in above.items() if not failed)
    return Boundary(smallest, passes, size, modulus, multiples, () if modulus else tuple(passing[:3]))


def _smallest(fails: Fails, size: int) -> int:
    """Return the smallest failing size, by bisection below the first failing power of two, or power of two plus one.

    The sizes plus one are tried because a fault in the remainder of a tile does not show at a power of two.
    """
    low, high = 0, size
    for n in (n for k in range(size.bit_length()) for n in (1 << k, (1 << k) + 1)):
        if n < size and fails(n):
            high = n
            break
        low = n if n < size else low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def _rule(above: dict[int, bool]) -> tuple[int, bool]:
    """Return the modulus that decides which sizes fail, and whether its multiples do; (0, False) if there is none."""
    if all(above.values()):
        return 0, False
    for modulus in _MODULI:
        if len(above) > 2 * modulus or modulus == _MODULI[0]:
            if all(failed == (n % modulus != 0) for n, failed in above.items()):
                return modulus, False
            if all(failed == (n % modulus == 0) for n, failed in above.items()):
                return modulus, True
    return 0, False
