"""Scenarios that a test runs as cells of a plan."""

from __future__ import annotations

from typing import Any

from conformance import backends
from conformance.explain import describe
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import Observation
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CellId

# Modules of programs that measure times, or need threads, processes or late work to run at the same time. A busy
# machine may run one of these too late.
MEET = {
    "at_once", "devices", "drawn_collectives", "first_uses", "groups", "long_draws", "module_streams", "profiling",
    "streams", "threads", "waits", "walks",
}  # fmt: skip


def planned(backend: str, tier: str = "full", **selection: Any) -> Plan:
    return Plan(backends.find(backend), Selection(tier=TIERS[tier], **selection), seed=20)


def observe(plan: Plan, name: str, timeout: float = 150) -> Observation:
    runner = Runner(CellRunner(plan), timeout)
    try:
        return runner.observe(CellId.of_scenario(name))
    finally:
        runner.close()


def first_failing(plan: Plan, name: str, timeout: float = 150, *, late: bool = False) -> Observation:
    """Return the first failing observation, or the last: up to 5 if work is ``late`` or the module is in ``MEET``."""
    found = observe(plan, name, timeout)
    for _ in range(4 if late or name.partition(":")[0] in MEET else 0):
        if found.status.is_failure:
            break
        found = observe(plan, name, timeout)
    return found


def said(observation: Observation) -> str:
    return "\n".join(line for failure in observation.failures for line in describe.findings(failure))
