"""The pattern of a mismatch's wrong elements as text. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EXPECTED = {
    "nan": "where the expected value is NaN",
    "infinite": "where the expected value is infinite",
    "zero": "where the expected value is zero",
    "negative": "where the expected value is negative",
}
_ORDINALS = {2: "second", 3: "third"}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # by the last digit


def text(pattern: Mapping[str, Any]) -> str:
    """Return the rules of a pattern, e.g. ``all with index >= 1024; all zero``; "" if it has no rules."""
    return "; ".join(filter(None, (_where(pattern), _values(pattern))))


def _where(pattern: Mapping[str, Any]) -> str:
    rule = pattern["where"]
    if rule is None or (pattern["wrong"] == 1 and rule["kind"] in ("box", "flat")):
        return ""  # a single element needs no pattern
    if rule["kind"] == "all":
        return "all elements"
    if rule["kind"] == "expected":
        return _EXPECTED[rule["is"]]
    if rule["kind"] == "flat":
        return f"{_indices(rule)} of the flat index" if "every" in rule else f"all with flat {_bounds(rule)}"
    return " of ".join(_dimension(dim, len(rule["dims"])) for dim in reversed(rule["dims"]))


def _dimension(rule: Mapping[str, Any], count: int) -> str:
    """Return one dimension of a box as text."""
    if "every" in rule:
        return f"{_indices(rule)} of dim {rule['dim']}"
    first, last, size = rule["from"], rule["to"], rule["size"]
    if first and last == size - 1 and count == 1 and rule["dim"] == 0:
        return f"all with index >= {first} in dim 0"
    if first and last == size - 1:
        return f"the last {last - first + 1} of {size} in dim {rule['dim']}"
    return f"index {first} of dim {rule['dim']}" if first == last else f"indices {first}-{last} of dim {rule['dim']}"


def _bounds(rule: Mapping[str, Any]) -> str:
    first, last = rule["from"], rule["to"]
    if last == rule["size"] - 1:
        return f"index >= {first}"
    return f"index <= {last}" if first == 0 else f"index {first}-{last}"


def _indices(rule: Mapping[str, Any]) -> str:
    return f"every {_ordinal(rule['every'])} index from {rule['at']}"


def _ordinal(n: int) -> str:
    ending = "th" if n // 10 % 10 == 1 else _ENDINGS.get(n % 10, "th")
    return _ORDINALS.get(n, f"{n}{ending}")


def _values(pattern: Mapping[str, Any]) -> str:
    rule = pattern["values"]
    if rule is None:
        return ""
    one = pattern["wrong"] == 1
    return {
        "nan": "NaN" if one else "all NaN",
        "zero": "zero" if one else "all zero",
        "constant": f"all {rule.get('value')}",
        "negated": "the sign is flipped",
        "shifted": f"shifted by {'one' if rule.get('by') == 1 else 'minus one'}",
        "stale": "equal to what the memory held before the call",
    }[rule["kind"]]
