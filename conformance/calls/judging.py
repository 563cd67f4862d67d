"""The judging of a recorded call, as the program made it, or made again from its bytes."""

from __future__ import annotations

from functools import cache

from conformance.backends import Capabilities
from conformance.calls.model import Call, RecordedTwins
from conformance.inventory import call_of, route_of
from conformance.judging import subnormals
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.oracle import CallOutcome
from conformance.judging.tolerances import criteria_of
from conformance.vocabulary import DEFAULT_SEED, Route


@cache
def route(overload: str, device: str) -> Route:
    """Return how the device serves an overload."""
    return route_of(overload, device)


def judge_of(call: Call, backend: Capabilities) -> Judge:
    """Return a judge that uses the call's own storages."""
    twins, overload = RecordedTwins(call.storages), call.overload
    criteria = criteria_of(overload, subnormals.kept(backend))
    return Judge(twins, backend, call_of(overload), route(overload, backend.device), criteria, DEFAULT_SEED)


def again(call: Call, backend: Capabilities) -> CaseResult:
    """Make the call again on CPU and on the device, and compare the outcomes."""
    return judge_of(call, backend).judge(call.case)


def made(call: Call, backend: Capabilities, actual: CallOutcome) -> CaseResult:
    """Compare the outcome of the program's own call with CPU's outcome on the same bytes."""
    return judge_of(call, backend).judge_outcome(call.case, actual)
