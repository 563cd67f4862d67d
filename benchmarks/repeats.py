"""Whether each printed command ``repeat:`` fails as its case did: ``repeats [SUMMARY] [--faults A,B] [--workers N]``.

For each fault that the kill-rate's first lane finds in a cell, the cell runs once more with the fault awake, and so
does the command that its failure prints, in a process of its own. SUMMARY is the kill-rate's ``summary.json``. Commands
that pass are printed, and then the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from refnpu import testing

from conformance import backends
from conformance.explain import describe
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import DEFAULT_SEED, CellId

SUMMARY = Path(__file__).parents[1] / "results" / "kill-rate" / "summary.json"
BACKEND = "refnpu"
TIMEOUT = 60.0
INQUIRY_S = 60.0  # for each cell; a whole run has the same time for many cells
REPEAT = "repeat: "
PROCESSES = 10  # in which a cell may fail


@dataclass(frozen=True, slots=True)
class Kill:
    """A fault, and the cell in which it was found."""

    fault: str
    cell: CellId


def kills(summary: Path, lane: str) -> dict[str, str]:
    """Return the items in which a lane found the faults."""
    detail = json.loads(summary.read_text(encoding="utf-8"))["detail"]
    found = {fault: rows.get(lane, {}) for fault, rows in detail.items()}
    return {fault: row["where"] for fault, row in found.items() if row.get("killed_by")}


def cells(plan: Plan) -> dict[str, CellId]:
    """Return all cells by their names, with the scenarios."""
    every = [*plan.scenarios(), *(cell for overload in plan.overloads() for cell in plan.cells(overload))]
    return {str(cell): cell for cell in every}


def failure(plan: Plan, kill: Kill) -> str | None:
    """Return the text of the failure in the first fresh process in which the cell fails, None if it never fails."""
    testing.set_fault(kill.fault)
    try:
        for _ in range(PROCESSES):
            runner = Runner(CellRunner(plan), TIMEOUT, inquiry_s=INQUIRY_S, failures_s=INQUIRY_S)
            try:
                seen = runner.observe(kill.cell)
            finally:
                runner.close()
            if seen.status.is_failure:
                return describe.observation(seen, BACKEND)
    finally:
        testing.set_fault(None)
    return None


def printed(text: str) -> str:
    """Return the first command that repeats a failure, "" if there is none."""
    lines = (line.strip() for line in text.splitlines())
    return next((line.removeprefix(REPEAT) for line in lines if line.startswith(REPEAT)), "")


def fails(kill: Kill, command: str) -> bool:
    """Return whether the command ends as pytest does after failures."""
    program, *arguments = shlex.split(command)
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-m", program, *arguments, "-q", "--results", elsewhere],
            cwd=elsewhere, env=os.environ | {"REFNPU_FAULT": kill.fault}, capture_output=True, check=False,
        )  # fmt: skip
    return done.returncode == 1


def main() -> int:
    """Return 0 if every command fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("summary", nargs="?", type=Path, default=SUMMARY)
    parser.add_argument("--faults", default="", help="only these")
    parser.add_argument("--workers", type=int, default=2, help="commands at a time")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    plan = Plan(backends.find(BACKEND), Selection(tier=TIERS["wide"]), DEFAULT_SEED)
    by_name = cells(plan)
    wanted = given.faults.split(",") if given.faults else None
    found = {f: where for f, where in kills(given.summary, "malloc").items() if wanted is None or f in wanted}
    in_cells = [Kill(fault, by_name[where]) for fault, where in found.items() if where in by_name]
    silent: list[str] = []
    alone: list[str] = []
    passed: list[str] = []
    with ThreadPoolExecutor(given.workers) as pool:
        running = []
        for kill in in_cells:
            text = failure(plan, kill)
            if text is None:
                alone.append(kill.fault)
                print(f"{kill.fault}: {kill.cell} passes alone", flush=True)
                continue
            command = printed(text)
            if not command:
                silent.append(kill.fault)
                print(f"{kill.fault}: no command after {kill.cell}", flush=True)
                continue
            running.append((kill, command, pool.submit(fails, kill, command)))
        for kill, command, failed in running:
            if not failed.result():
                passed.append(kill.fault)
                print(f"{kill.fault}: passes: {command}", flush=True)
    tried = len(in_cells) - len(alone)
    right = tried - len(silent) - len(passed)
    elsewhere = len(found) - len(in_cells)
    print(f"{right} of {tried} commands fail again; {len(alone)} cells pass alone; {elsewhere} found in no cell")
    return 1 if silent or passed else 0


if __name__ == "__main__":
    sys.exit(main())
