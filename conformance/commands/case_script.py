"""The script of a case, for the commands that write one."""

from __future__ import annotations

from conformance.commands.edge import tell
from conformance.explain import repro
from conformance.plan.plan import Plan
from conformance.records import Setting
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CaseId

GATE_S = 60.0  # for each primitive of the bring-up gate


def case_script(plan: Plan, case: str, setting: Setting | None = None, *, contained: bool = True) -> str:
    """Return the script of a case, see :func:`repro.script_of_case`. Raises LookupError for an unknown case.

    A program leaves out the lines that need a primitive which the bring-up gate finds broken now, as in a run.
    """
    wanted = CaseId.parse(case)
    asks = wanted is not None and wanted.cell.is_scenario and plan.knows(case)
    return repro.script_of_case(plan, case, setting=setting, contained=contained, without=_broken(plan) if asks else ())


def _broken(plan: Plan) -> tuple[str, ...]:
    """Return the broken primitives of the bring-up gate, each tried in a child process that may die."""
    runner = Runner(CellRunner(plan), GATE_S)
    try:
        gate = runner.gate()
    finally:
        runner.close()
    for line in str(gate).splitlines():
        tell(f"bring-up gate: {line}")
    return tuple(gate.limits)
