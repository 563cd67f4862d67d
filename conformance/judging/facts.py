"""Numbers, dtypes, sizes and errors as facts of a mismatch, in types that JSON has."""

from __future__ import annotations

import math
from typing import Any

from conformance.ambient import Change
from conformance.support.lines import first_line
from conformance.vocabulary import Fact

_EXACT = 1 << 53  # beyond it, a JSON reader that has only doubles loses digits


def value(found: Any) -> Any:
    """Return a value that JSON has as it is, sizes as lists, dtypes by name, and all other values as text."""
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
    """Return the facts of a change besides memory. The state of a generator is left out, because it is too long."""
    values = {} if change.is_draw else {"before": value(change.before), "after": value(change.after)}
    return {"kind": Fact.STATE.value, "what": change.what, **values}
