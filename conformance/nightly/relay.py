"""The report to PyTorch's CI relay: the inputs of its callback action, within its size limits. Pure.

The relay and its states: RFC-0050 in github.com/pytorch/rfcs. The action and its inputs:
.github/actions/cross-repo-ci-relay-callback in github.com/pytorch/test-infra. The action fetches a token and sends the
report. A scheduled run reports for the commit of torch that it tested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.explain import describe
from conformance.nightly.families import Failing, by_family
from conformance.nightly.verdict import cut
from conformance.vocabulary import Status

MOST_TESTS = 1000
MESSAGE = 1024  # bytes
STACK = 4096  # bytes
DETAIL = 100_000  # bytes of all tests: Linux starts no process with a variable of more than 128 KiB


@dataclass(frozen=True, slots=True)
class Ran:
    """A lane's run in the report."""

    lane: str
    torch: str
    by_status: dict[str, int]
    compared: int  # overloads
    overloads: int


def commit(told: Sequence[str]) -> str:
    """Return the commit of torch that was tested. Raises ValueError unless it is exactly one full commit."""
    found = sorted(set(told))
    if len(found) != 1 or not re.fullmatch("[0-9a-f]{40}", found[0]):
        said = ", ".join(map(repr, found))
        raise ValueError(f"expected one full commit of torch, 40 hexadecimal digits; got {said}")
    return found[0]


def inputs(
    ran: Sequence[Ran], failing: Sequence[Failing], commit: str, artifacts: str, verdict: Mapping[str, Any] | None
) -> dict[str, str]:
    """Return the action's inputs.

    ``commit``: the full commit of torch; ``artifacts``: URL of the results; ``verdict``: that of
    :mod:`conformance.nightly.verdict`.
    """
    total: dict[str, int] = {s.value: sum(r.by_status.get(s.value, 0) for r in ran) for s in Status}
    wrong = len(failing)
    undecided = total[Status.UNSUPPORTED] + total[Status.NOT_REACHED]
    expected = sum(total[s.value] for s in Status if s.is_failure) - wrong
    results = {
        "passed": total[Status.PASS], "failed": wrong, "skipped": undecided + expected,
        "coverage": {r.lane: {"compared": r.compared, "total": r.overloads} for r in ran},
    }  # fmt: skip
    sound = not wrong and not total[Status.NOT_REACHED] and bool(ran)
    return {
        "status": "completed", "conclusion": "success" if sound else "failure", "event-type": "nightly",
        "delivery-id": commit, "artifact-url": artifacts, "test-results": json.dumps(results),
        "failed-tests-detail": json.dumps(_tests(failing)),
        "triage-verdict": json.dumps(verdict, ensure_ascii=False) if verdict else "",
    }  # fmt: skip


def outputs(given: dict[str, str]) -> str:
    """Return the inputs as lines of a step's outputs. Raises ValueError for a line break in a value."""
    for name, value in given.items():
        if "\n" in value or "\r" in value:
            raise ValueError(f"{name}: contains a line break: {value!r}")
    return "".join(f"{name}={value}\n" for name, value in given.items())


def _tests(failing: Sequence[Failing]) -> list[dict[str, Any]]:
    """Return a test for each of the largest families, as many as the limits allow."""
    largest = sorted(by_family(failing).items(), key=lambda item: (-len(item[1]), item[0]))
    found, room = [], DETAIL
    for name, cells in largest[:MOST_TESTS]:
        found.append(_test(name, cells))
        room -= len(json.dumps(found[-1])) + len(", ")
        if room < 0:
            return found[:-1]
    return found


def _test(family: str, cells: Sequence[Failing]) -> dict[str, Any]:
    lanes = ", ".join(sorted({f.lane for f in cells}))
    first = cells[0]
    shown = f"{first.case or first.cell}: {describe.excerpt(first.seen)}"
    return {
        "name": family, "classname": first.overload,
        "message": cut(f"{len(cells)} cells in {lanes}; first: {shown}", MESSAGE),
        "stacktrace": cut(describe.observation(first.seen, first.backend), STACK),
    }  # fmt: skip
