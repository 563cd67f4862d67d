"""Parts of sentences: numbers with nouns and units, and the first of many names."""

from __future__ import annotations

from collections.abc import Sequence

_ROUNDED_UP = 0.9995  # this part of a unit is rounded up to 1 in three digits
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def counted(n: int, what: str) -> str:
    """Return a number with its noun, e.g. ``1 cell`` or ``2 cells``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def some(names: Sequence[str], most: int = 6) -> str:
    """Return the first names on one line, and how many more there are, e.g. ``abs, neg and 7 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def seconds(s: float) -> str:
    """Return seconds with three digits and a unit, e.g. ``12.3 us``."""
    for unit, name in _UNITS:
        if abs(s) >= _ROUNDED_UP * unit:
            return f"{s / unit:.3g} {name}"
    return f"{s / 1e-9:.3g} ns" if s else "0 s"


def amount(n: float | None, unit: str) -> str:
    """Return a number with three digits, a prefix and its unit, e.g. ``8.2 GB/s``; ``-`` for None."""
    if n is None:
        return "-"
    for size, prefix in _PREFIXES:
        if abs(n) >= _ROUNDED_UP * size:
            return f"{n / size:.3g} {prefix}{unit}"
    return f"{n:.3g} {unit}"
