"""CPU time of a case of the full tier, op calls and all: ``cell_cost.py [CELLS] [--against TREE]``.

Stretches of 50 cells of the reference NPU, drawn with a fixed seed from the whole full tier, 3,000 cells unless told
otherwise. They run as in a child of the runner, in this process. ``TREE`` is another checkout of the suite, for example
of the commit before a change: both run each stretch in turn, so that the load of the machine affects both alike. The
outcomes of the cells are compared: status, counts, and the check, subject and facts of every finding.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STRETCH = 50  # consecutive cells
SEED = 18
BACKEND = "refnpu"
HERE = Path(__file__).resolve().parent.parent


def serve() -> None:
    """Run each stretch whose number comes on stdin, and write its costs and outcomes to stdout as a line of JSON."""
    from conformance import backends
    from conformance.judging import oracle
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection
    from conformance.plan.tiers import TIERS
    from conformance.running.cell_runner import CellRunner
    from conformance.vocabulary import DEFAULT_SEED

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what ops warn of
    warnings.simplefilter("ignore")
    setattr(oracle, "time", SimpleNamespace(perf_counter_ns=time.thread_time_ns))  # noqa: B010  # calls in CPU time
    plan = Plan(backends.find(BACKEND), Selection(tier=TIERS["full"]), DEFAULT_SEED)
    work = CellRunner(plan)
    work.prepare()
    cells = [cell for name in plan.overloads() for cell in plan.cells(name)]
    gc.freeze()
    print(len(cells), file=replies, flush=True)
    for line in sys.stdin:
        start = int(line) * STRETCH
        print(json.dumps(_stretch(work, cells[start : start + STRETCH])), file=replies, flush=True)


def _stretch(work: Any, cells: list[Any]) -> dict[str, Any]:
    from conformance.running.progress import Progress

    progress, begun = Progress(), time.process_time()
    found: list[list[Any]] = []
    for cell in cells:
        found.append([])  # as many parts as the cell has cases that may have damaged the process, and one
        first: int | None = 0
        while first is not None:
            observation, first = work.run(cell, first, progress)
            found[-1].append(observation)
    cpu = time.process_time() - begun
    parts = [part for cell in found for part in cell]
    return {
        "cpu": cpu, "op": sum(o.raw_ns for o in parts) / 1e9, "cases": sum(o.cases for o in parts),
        "found": [[_outcome(part.to_json()) for part in cell] for cell in found],
    }  # fmt: skip


def _outcome(observation: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in observation.items() if not name.endswith("_ns")}


class Worker:
    """The suite of one checkout, in a process of its own."""

    def __init__(self, tree: Path) -> None:
        variables = os.environ | {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, __file__, "--serve"]
        self._process = subprocess.Popen(
            command, cwd=tree, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.cells = int(self._line())
        self.cpu = self.op = 0.0
        self.cases = self.failing = 0

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline() or sys.exit("a worker has ended; run it alone: cell_cost.py 50")

    def run(self, stretch: int) -> list[Any]:
        """Run a stretch; return the outcomes of its cells."""
        assert self._process.stdin
        print(stretch, file=self._process.stdin, flush=True)
        reply: dict[str, Any] = json.loads(self._line())
        self.cpu += reply["cpu"]
        self.op += reply["op"]
        self.cases += reply["cases"]
        found: list[Any] = reply["found"]
        self.failing += sum(part["status"] == "fail" for cell in found for part in cell)
        return found

    def row(self, name: str) -> str:
        """One line of figures."""
        each, inside = 1e6 * self.cpu / self.cases, 1e6 * self.op / self.cases
        return f"{name:<10} {self.cases:>8} {each:>12.0f} {inside:>9.0f} {self.op / self.cpu:>9.1%} {self.failing:>9}"


def main(count: int, other: Path | None) -> int:
    """Print a line for each tree, their ratio, and every cell that differs. The exit code is 1 if one does."""
    workers = {"this": Worker(HERE)} | ({"other": Worker(other)} if other else {})
    stretches = min(worker.cells for worker in workers.values()) // STRETCH
    chosen = random.Random(SEED).sample(range(stretches), min(stretches, count // STRETCH))
    differing: list[tuple[Any, Any]] = []
    for turn, stretch in enumerate(chosen):
        order = list(workers)[:: 1 if turn % 2 else -1]
        found = {name: workers[name].run(stretch) for name in order}
        if other:
            pairs = zip(found["this"], found["other"], strict=True)
            differing += [(a, b) for a, b in pairs if a != b]
    print(f"{'tree':<10} {'cases':>8} {'CPU us/case':>12} {'op us':>9} {'op share':>9} {'failing':>9}")
    print(*(worker.row(name) for name, worker in workers.items()), sep="\n")
    if not other:
        return 0
    print(f"other / this: {workers['other'].cpu / workers['this'].cpu:.2f}; cells that differ: {len(differing)}")
    for a, b in differing:
        print(*(json.dumps(one) for one in (a, b)), sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="?", type=int, default=3000)
    parser.add_argument("--against", type=Path, metavar="TREE")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
    else:
        sys.exit(main(given.cells, given.against))
