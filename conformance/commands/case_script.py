"""The script of a case, for the commands that write one."""

from __future__ import annotations

from conformance.commands.edge import Mistake, tell
from conformance.explain import repro
from conformance.plan.plan import Plan
from conformance.records import Setting
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CaseId

GATE_S = 60.0  # seconds for each primitive of the bring-up gate


def case_script(plan: Plan, case: str, setting: Setting | None = None, *, contained: bool = True) -> str:
    """Return the script of a case, see :func:`repro.script_of_case`.

    As in a run, a program leaves out the lines that need a primitive that the bring-up gate finds broken. Raises
    LookupError for an unknown case, and Mistake for a program with cases before it.
    """
    wanted = CaseId.parse(case)
    is_program = wanted is not None and wanted.cell.is_scenario and plan.knows(case)
    if is_program and setting and setting.after:
        raise Mistake(
            f"--after: the script of a program has no calls before it; run it after others with: pytest --pyargs "
            f"conformance --backend {plan.backend.asked} --case '{case}' --after '{setting.after[0]}'"
        )
    without = _broken(plan) if is_program else ()
    return repro.script_of_case(plan, case, setting=setting, contained=contained, without=without)


def _broken(plan: Plan) -> tuple[str, ...]:
    """Return the primitives that the bring-up gate finds broken. Each is tried in a child process that may die."""
    runner = Runner(CellRunner(plan), GATE_S)
    try:
        gate = runner.gate()
    finally:
        runner.close()
    for line in str(gate).splitlines():
        tell(f"bring-up gate: {line}")
    return tuple(gate.limits)
