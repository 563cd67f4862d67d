"""The suite's judge for recorded calls: of a call that somebody else made, or made again from its bytes."""

from __future__ import annotations

from functools import cache

from conformance.backends import Capabilities
from conformance.calls.model import Call, RecordedTwins
from conformance.inventory import call_of, route_of
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.oracle import CallOutcome
from conformance.judging.tolerances import criteria_of
from conformance.vocabulary import DEFAULT_SEED, Route


@cache
def route(overload: str, device: str) -> Route:
    """How the device serves an overload."""
    return route_of(overload, device)


def judge_of(call: Call, backend: Capabilities) -> Judge:
    """A judge over the call's own storages."""
    twins, overload = RecordedTwins(call.storages), call.overload
    return Judge(
        twins, backend, call_of(overload), route(overload, backend.device), criteria_of(overload), DEFAULT_SEED
    )


def again(call: Call, backend: Capabilities) -> CaseResult:
    """Make the call again on both sides, and compare."""
    return judge_of(call, backend).judge(call.case)


def made(call: Call, backend: Capabilities, actual: CallOutcome) -> CaseResult:
    """Compare what the program's own call did on the device with CPU's on the same bytes."""
    return judge_of(call, backend).judge_outcome(call.case, actual)
