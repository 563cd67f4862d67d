"""The end of a call, and the advice that follows from the ends of a mismatch: pure functions of observations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conformance.aoti.model import Advice, Api, Axis, Call, Differing, End, Ended, Finding, Observed
from conformance.support.lines import first_line

# Messages of torch: for a check of an input, the number of inputs, a device. The runtime knows inputs by number only.
_NAMES_INPUT = re.compile(r"input_handles\[(\d+)\]")
_NAMES_NUMBER = re.compile(r"expected inputs vector size to be \d+|Ran into a kwarg|[Ee]xpected \d+ inputs?")
_NAMES_DEVICE = re.compile(r"unsupported device|incorrect device|device type|compiled for|no nvidia", re.IGNORECASE)


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
    # The comparison is the first to read the outputs, so a defect of the call may kill the process there.
    return (End.CRASH if observed.phase in ("load", "call", "compare") else End.NOT_JUDGED), detail


def _error(call: Call, observed: Observed) -> tuple[End, str]:
    for text in (observed.raised, observed.printed):
        line = clear_line(call, text)
        if line:
            return End.CLEAR_ERROR, line
    return End.OTHER_ERROR, first_line(observed.raised)


def clear_line(call: Call, text: str) -> str:
    """Return the line of an error that names the mismatch of a call, "" if there is none."""
    for line in text.splitlines():
        found = _NAMES_INPUT.search(line)
        if (found and int(found[1]) in call.changed) or _names_what(call.axis, line):
            return line.strip()
    return ""


def _names_what(axis: Axis, line: str) -> bool:
    pattern = {Axis.NUMBER: _NAMES_NUMBER, Axis.LOAD: _NAMES_DEVICE}.get(axis)
    return bool(pattern and pattern.search(line))


Key = tuple[Axis, str, str]


def _key(one: Ended) -> Key:
    return one.call.axis, one.call.subject, one.call.what


def findings(every: Iterable[Ended], api: Api = Api.CURRENT) -> tuple[Finding, ...]:
    """Return each mismatch with its ends by one API, and the advice, in the order of the calls.

    Mismatches of the load device come from all APIs, because each API accepts other devices.
    """
    pairs: dict[Key, dict[bool, Ended]] = {}
    for one in every:
        if one.api is api or one.call.axis is Axis.LOAD:
            pairs.setdefault(_key(one), {})[one.checked] = one
    return tuple(_finding(key, by.get(False), by.get(True)) for key, by in pairs.items())


def _finding(key: Key, unset: Ended | None, checked: Ended | None) -> Finding:
    ends = (unset.end if unset else None), (checked.end if checked else None)
    shown = next((e for e in (unset, checked) if e and e.end.is_finding), unset or checked)
    return Finding(*key, *ends, advice(key[0], *ends), shown.detail if shown else "")


def advice(axis: Axis, unset: End | None, checked: End | None) -> Advice:
    """Return the advice for a mismatch from its ends with the switch unset and set. None: not tried."""
    if axis is Axis.NOTHING:
        return Advice.NONE if {unset, checked} <= {End.RIGHT, None} else Advice.WRONG_PACKAGE
    if checked and checked.is_finding:
        return Advice.NOT_CHECKED
    if unset and unset.is_finding:
        return Advice.SET_SWITCH if checked else Advice.NOT_TRIED
    if unset is End.RIGHT and checked in (End.CLEAR_ERROR, End.OTHER_ERROR):
        return Advice.STRICTER
    return Advice.NONE


def differing(every: Iterable[Ended]) -> tuple[Differing, ...]:
    """Return the calls whose ends by the deprecated API and by the current API differ."""
    current: dict[tuple[Key, bool], End] = {}
    found = []
    for one in every:
        place = _key(one), one.checked
        if one.api is Api.CURRENT:
            current[place] = one.end
        elif place in current and current[place] is not one.end:
            found.append(Differing(*_key(one), one.checked, current[place], one.end))
    return tuple(found)
