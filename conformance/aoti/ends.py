"""How a call ends, and what follows from the ends of a mismatch: pure functions of what was observed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.aoti.model import Advice, Api, Axis, Call, End, Ended, Finding, Observed

# Torch's own words: a check of an input, and the number of inputs. The runtime numbers the inputs, and has no names.
_NAMES_INPUT = re.compile(r"input_handles\[(\d+)\]")
_NAMES_NUMBER = re.compile(r"expected inputs vector size to be \d+|Ran into a kwarg|[Ee]xpected \d+ inputs?")
_UNSUPPORTED_DEVICE = re.compile(r"[Uu]nsupported device|device type|compiled for|No CUDA|CUDA driver|no NVIDIA", re.I)


def ended(call: Call, checked: bool, api: Api, observed: Observed) -> Ended:
    """Return how a call ended, with the fact that decides it."""
    return Ended(call, checked, api, *_end(call, observed))


def _end(call: Call, observed: Observed) -> tuple[End, str]:
    if observed.died:
        return _death(observed)
    if observed.phase in ("prepare", "eager"):
        return End.NOT_JUDGED, observed.raised or f"the process ended in the phase {observed.phase!r}"
    if observed.raised:
        return _error(call, observed)
    if observed.eager_raised:
        return End.GARBAGE, f"outputs, where eager raises {observed.eager_raised}"
    if observed.difference:
        return End.GARBAGE, observed.difference
    return End.RIGHT, ""


def _death(observed: Observed) -> tuple[End, str]:
    how = "no end in time" if observed.died == "timeout" else observed.died
    detail = f"{how} in the phase {observed.phase!r}"
    # Outputs are read for the first time where they are compared.
    return (End.CRASH if observed.phase in ("load", "call", "compare") else End.NOT_JUDGED), detail


def _error(call: Call, observed: Observed) -> tuple[End, str]:
    for text in (observed.raised, observed.printed):
        line = clear_line(call, text)
        if line:
            return End.CLEAR_ERROR, line
    return End.OTHER_ERROR, first_line(observed.raised)


def clear_line(call: Call, text: str) -> str:
    """Return the line of an error that names what is wrong with a call; "" if none does."""
    for line in text.splitlines():
        found = _NAMES_INPUT.search(line)
        if (found and int(found[1]) in call.changed) or _names_what(call.axis, line):
            return line.strip()
    return ""


def _names_what(axis: Axis, line: str) -> bool:
    pattern = {Axis.NUMBER: _NAMES_NUMBER, Axis.LOAD: _UNSUPPORTED_DEVICE}.get(axis)
    return bool(pattern and pattern.search(line))


def first_line(text: str) -> str:
    """Return the first line of an error that has one."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def last_line(text: str) -> str:
    """Return the last line that is not empty: that of a traceback says what was raised."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def findings(every: Iterable[Ended], api: Api = Api.CURRENT) -> tuple[Finding, ...]:
    """Return each mismatch with its ends by one API, and what follows; in the order of the calls."""
    pairs: dict[tuple[Axis, str], dict[bool, Ended]] = {}
    for one in every:
        if one.api is api:
            pairs.setdefault((one.call.axis, one.call.what), {})[one.checked] = one
    return tuple(_finding(axis, what, by.get(False), by.get(True)) for (axis, what), by in pairs.items())


def _finding(axis: Axis, what: str, unset: Ended | None, checked: Ended | None) -> Finding:
    ends = (unset.end if unset else None), (checked.end if checked else None)
    shown = next((e for e in (unset, checked) if e and e.end.is_finding), unset or checked)
    return Finding(axis, what, *ends, advice(axis, *ends), shown.detail if shown else "")


def advice(axis: Axis, unset: End | None, checked: End | None) -> Advice:
    """Return what follows from the ends of a mismatch with the switch unset and set; None: not tried."""
    if axis is Axis.NOTHING:
        return Advice.NONE if {unset, checked} <= {End.RIGHT, None} else Advice.WRONG_PACKAGE
    if checked and checked.is_finding:
        return Advice.NOT_CHECKED
    if unset and unset.is_finding:
        return Advice.SET_SWITCH if checked else Advice.NOT_TRIED
    if unset is End.RIGHT and checked in (End.CLEAR_ERROR, End.OTHER_ERROR):
        return Advice.STRICTER
    return Advice.NONE


def differences(every: Iterable[Ended]) -> list[tuple[Ended, Ended]]:
    """Return the calls that end in another way with the deprecated API than with the current one."""
    current: dict[tuple[Axis, str, bool], Ended] = {}
    pairs = []
    for one in every:
        key = (one.call.axis, one.call.what, one.checked)
        if one.api is Api.CURRENT:
            current[key] = one
        elif key in current and current[key].end is not one.end:
            pairs.append((current[key], one))
    return pairs
