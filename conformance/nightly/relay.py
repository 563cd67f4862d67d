"""What a night tells the relay of PyTorch's CI: the inputs of its callback action, in the sizes that it takes; pure.

The relay and its states: RFC-0050 in github.com/pytorch/rfcs; the action and its inputs:
.github/actions/cross-repo-ci-relay-callback in github.com/pytorch/test-infra. The action itself fetches a token and
sends; a night that started by its own clock names the commit of torch that it ran on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from conformance.explain import describe
from conformance.nightly.families import Failing, by_family
from conformance.vocabulary import Status

MOST_TESTS = 1000
MESSAGE = 1024  # bytes
STACK = 4096  # bytes


@dataclass(frozen=True, slots=True)
class Ran:
    """A lane's run, as the relay is told of it."""

    lane: str
    torch: str
    by_status: dict[str, int]
    compared: int  # overloads
    overloads: int


def commit(told: Sequence[str]) -> str:
    """The one commit of torch that was tested. Raises ValueError where there are several, or what is none."""
    found = sorted(set(told))
    if len(found) != 1 or not re.fullmatch("[0-9a-f]{40}", found[0]):
        said = ", ".join(map(repr, found))
        raise ValueError(f"expected one commit of torch in full, 40 hexadecimal digits; got {said}")
    return found[0]


def inputs(ran: Sequence[Ran], failing: Sequence[Failing], commit: str, artifacts: str) -> dict[str, str]:
    """The action's inputs. ``commit``: of torch, in full; ``artifacts``: where the results can be seen."""
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
        "failed-tests-detail": json.dumps([_test(name, cells) for name, cells in _largest(failing)]),
    }  # fmt: skip


def outputs(given: dict[str, str]) -> str:
    """The inputs as lines of a step's outputs; JSON holds no line break, so none can end a value."""
    for name, value in given.items():
        if "\n" in value or "\r" in value:
            raise ValueError(f"{name}: holds a line break: {value!r}")
    return "".join(f"{name}={value}\n" for name, value in given.items())


def _largest(failing: Sequence[Failing]) -> list[tuple[str, list[Failing]]]:
    return sorted(by_family(failing).items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_TESTS]


def _test(family: str, cells: Sequence[Failing]) -> dict[str, Any]:
    lanes = ", ".join(sorted({f.lane for f in cells}))
    first = cells[0]
    shown = f"{first.case or first.cell}: {describe.excerpt(first.seen)}"
    return {
        "name": family, "classname": first.overload,
        "message": _cut(f"{len(cells)} cells in {lanes}; first: {shown}", MESSAGE),
        "stacktrace": _cut(describe.observation(first.seen, first.backend), STACK),
    }  # fmt: skip


def _cut(text: str, size: int) -> str:
    """At most so many bytes of UTF-8, whole characters; what cannot be written so is replaced."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
