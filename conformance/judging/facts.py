"""Values as facts of a mismatch: what JSON can hold of numbers, dtypes, sizes and errors."""

from __future__ import annotations

import math
from typing import Any

from conformance.ambient import Change
from conformance.support.lines import first_line
from conformance.vocabulary import Fact

_EXACT = 1 << 53  # beyond it a reader that has doubles alone loses digits


def value(found: Any) -> Any:
    """Return a number, bool, text or None as it is where JSON has it, sizes as lists, dtypes by name, else as text."""
    if isinstance(found, float):
        return found if math.isfinite(found) else str(found)
    if isinstance(found, int):
        return found if isinstance(found, bool) or abs(found) <= _EXACT else str(found)
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, (tuple, list)):
        return [value(one) for one in found]
    return str(found).removeprefix("torch.")


def error(raised: BaseException | None) -> dict[str, str] | None:
    """Return the type of an error and the first line of its message; None for no error."""
    if raised is None:
        return None
    return {"type": type(raised).__name__, "message": first_line(str(raised))}


def changed(change: Change) -> dict[str, Any]:
    """Return what a call changed besides memory. A generator's state is too long for a fact."""
    values = {} if change.is_draw else {"before": value(change.before), "after": value(change.after)}
    return {"kind": Fact.STATE.value, "what": change.what, **values}
