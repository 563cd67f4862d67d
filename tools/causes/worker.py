"""The measuring process. It never uses the device, and forks for the cells of each fault.

``python -m tools.causes.worker MODULE BACKEND DIRECTORY FAULT...``; the session sets the environment.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import Observation
from conformance.results import causes
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import DEFAULT_SEED, CellId, Status
from tools.causes import asleep, clean, sample
from tools.causes.clean import Clean
from tools.causes.trial import Trial, forget_others
from tools.kill_rate.worker import cpu_s

TIMEOUT = 5.0  # seconds a cell
MOST_TIMEOUTS = 80  # of one fault; the rest of its cells are left out


def main(module: str, name: str, directory: str, *faults: str) -> int:
    """Run the trials that the directory lacks, and print a line for each. Return 130 after Ctrl-C, else 0."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    testing = importlib.import_module(f"{module}.testing")
    backend = backends.find(name)
    work = CellRunner(Plan(backend, Selection(tier=TIERS["smoke"]), DEFAULT_SEED))
    work.prepare()
    cells = sample.of_plan(work.plan)
    place = Path(directory)
    forget_others(place, made_with(backend, cells))
    try:
        found = asleep.run(work, cells, testing.questions, place / clean.FILE, TIMEOUT)
        for fault in faults:
            file = place / f"{fault}.json"
            if not file.is_file():
                trial = with_fault(work, fault, found, testing.set_fault)
                file.write_text(json.dumps(trial.to_json()) + "\n", encoding="utf-8")
                print(told(trial), flush=True)
    except KeyboardInterrupt:
        return 130
    return 0


def made_with(backend: backends.Capabilities, cells: Sequence[CellId]) -> dict[str, str]:
    """Return the facts that trials depend on. A measurement continues only trials with the same facts."""
    plan = hashlib.sha256("\n".join(map(str, cells)).encode()).hexdigest()[:16]
    return {"torch": torch.__version__, "build": backend.build_info().get("commit", ""), "plan": plan}


def with_fault(
    work: CellRunner, fault: str, found: Mapping[CellId, Clean], wake: Callable[[str | None], None]
) -> Trial:
    """Run the cells that ask for a fault while it is awake."""
    asking = [one for one in found.values() if fault in one.faults and one.status]
    chosen = set(sample.of_fault(asking))
    cells = [cell for cell in found if cell in chosen]
    started = cpu_s()
    wake(fault)
    try:
        gate, seen = _observed(work, cells)
    finally:
        wake(None)
    # Cells that also fail without a fault do not count.
    failing = [o for o in seen if o.status.is_failure and found[o.cell].status == Status.PASS]
    passing = tuple(o.cell for o in seen if o.status is Status.PASS)
    return Trial(
        fault, len(asking), tuple(map(causes.failing_cell, failing)), passing, gate, round(cpu_s() - started, 1)
    )


def _observed(work: CellRunner, cells: Sequence[CellId]) -> tuple[str, list[Observation]]:
    """Return the bring-up gate's finding, "" if there is none, and the observations of the cells."""
    runner = Runner(work, TIMEOUT, inquiry_s=0)
    seen: list[Observation] = []
    try:
        broken = runner.gate()
        for cell in cells:
            seen.append(runner.observe(cell))
            if sum(o.status is Status.TIMEOUT for o in seen) == MOST_TIMEOUTS:
                break
    finally:
        runner.close()
    return str(broken).partition("\n")[0], seen


def told(trial: Trial) -> str:
    """Return one line about a trial."""
    tried = len(trial.failing) + len(trial.passing)
    return f"{trial.fault}: {len(trial.failing)} of {tried} cells fail ({trial.cpu_s:.1f} s)"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
