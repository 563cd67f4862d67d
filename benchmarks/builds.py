"""The cost of each build of a backend: ``builds.py [CELLS]`` runs the same cells in a lane of each build.

Each build of ``matrices/refnpu.toml`` for its main torch runs 1,000 smoke cells (or CELLS) in a process of its own,
three times in turn; the best run counts. Builds with a sanitizer also run with ``PYTHONMALLOC=malloc``, so that
the sanitizer's memory has Python's objects, too. The result is the CPU seconds of the processes that ran cells, without
their start, and the ratio to the first build. A build without an environment is left out; create one first:
``nox -s torch-2.13-asan``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from conformance.lanes import matrix, process

ROOT = Path(__file__).parents[1]
ROUNDS = 3
MEASURE = """
import os, sys, warnings
import torch
from conformance import backends
from conformance.plan.tiers import TIERS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner

warnings.simplefilter("ignore")
torch.set_num_threads(1)
plan = Plan(backends.find(sys.argv[1]), Selection(tier=TIERS["smoke"]), 20)
cells = [cell for name in plan.overloads() for cell in plan.cells(name)]
cells = cells[:: max(1, len(cells) // int(sys.argv[2]))]

def spent():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system

before = spent()
runner = Runner(CellRunner(plan), 60)
for cell in cells:
    seen = runner.observe(cell)
    if cell is cells[-1]:
        seen = runner.searched(seen)
    assert not seen.status.is_failure, seen
runner.close()
print(len(cells), spent() - before)
"""


def measure(lane: matrix.Lane, cells: int, **changed: str) -> tuple[int, float]:
    """Return the number of cells and the CPU seconds of one lane. ``changed``: environment variables."""
    start = process.start(ROOT, lane.name)
    command = [start.python, "-W", "ignore", "-c", MEASURE, lane.backend, str(cells)]
    variables = os.environ | start.variables | changed
    done = subprocess.run(command, env=variables, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    ran, seconds = done.stdout.split()
    return int(ran), float(seconds)


def main(cells: int) -> None:
    """Print a line for each build."""
    found = matrix.load(ROOT / "matrices" / "refnpu.toml")
    lanes = [x for x in found.lanes() if x.torch == found.main_torch and x.environment == found.environments[0]]
    rows: dict[str, partial[tuple[int, float]]] = {}
    for lane in lanes:
        try:
            process.start(ROOT, lane.name)
        except LookupError as e:
            print(f"left out: {e}", file=sys.stderr)
            continue
        rows[lane.name] = partial(measure, lane, cells)
        if lane.build.sanitizers:
            rows[f"{lane.name}, PYTHONMALLOC=malloc"] = partial(measure, lane, cells, PYTHONMALLOC="malloc")
    best: dict[str, tuple[int, float]] = {}
    for _ in range(ROUNDS):
        for name, row in rows.items():
            seen = row()
            best[name] = min(best.get(name, seen), seen, key=lambda pair: pair[1])
    first = next(iter(best.values()))[1]
    print(f"{'lane':<52} {'cells':>6} {'cpu s':>7} {'ratio':>6}")
    for name, (ran, seconds) in best.items():
        print(f"{name:<52} {ran:>6} {seconds:>7.2f} {seconds / first:>6.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
