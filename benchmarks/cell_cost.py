"""CPU time of a case of the full tier, op calls and all: ``cell_cost.py [CELLS] [--against TREE] [--only WORD]``.

The benchmark draws stretches of 50 cells of the reference NPU with a fixed seed from the whole full tier, by default
3,000 cells. A worker process of each checkout runs each stretch in a forked child, as the runner does. ``TREE`` is
another checkout of the suite, for example of the commit before a change. Both run each stretch in turn, so that the
load of the machine affects both alike. The outcomes of the cells are compared: status, counts, and the check, subject
and facts of every finding.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

STRETCH = 50  # consecutive cells
SEED = 18
BACKEND = "refnpu"
HERE = Path(__file__).resolve().parent.parent


def serve(only: str) -> None:
    """Run each stretch whose number comes on stdin, and write its costs and outcomes to stdout as a line of JSON."""
    from conformance import backends
    from conformance.judging import oracle
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection
    from conformance.plan.tiers import TIERS
    from conformance.running.cell_runner import CellRunner
    from conformance.vocabulary import DEFAULT_SEED

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # warnings of ops
    warnings.simplefilter("ignore")
    setattr(oracle, "time", SimpleNamespace(perf_counter_ns=time.thread_time_ns))  # noqa: B010  # calls in CPU time
    plan = Plan(backends.find(BACKEND), Selection(tier=TIERS["full"]), DEFAULT_SEED)
    work = CellRunner(plan)
    work.prepare()
    names = [name for name in plan.overloads() if only in name]
    cells = [cell for name in names for cell in plan.cells(name)]
    gc.freeze()
    print(len(cells), file=replies, flush=True)
    for line in sys.stdin:
        start = int(line) * STRETCH
        print(json.dumps(_stretch(work, cells[start : start + STRETCH])), file=replies, flush=True)


def _stretch(work: Any, cells: list[Any]) -> list[dict[str, Any]]:
    """Run cells in a child process. After a cell that ends it, start a new child. Return a reply for each cell."""
    replies: list[dict[str, Any]] = []
    while len(replies) < len(cells):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _run(work, cells[len(replies) :], writing)
        os.close(writing)
        with os.fdopen(reading) as lines:
            replies += map(json.loads, lines)
        _, status = os.waitpid(child, 0)
        if status:
            found = [{"ended": os.waitstatus_to_exitcode(status)}]
            replies.append({"cpu": 0.0, "op": 0.0, "cases": 0, "found": found})
    return replies


def _run(work: Any, cells: list[Any], into: int) -> NoReturn:
    """Run cells in this process, and write a line of JSON for each."""
    from conformance.running.progress import Progress

    progress = Progress()
    for cell in cells:
        parts: list[Any] = []  # one more than the cases that may have damaged the process
        begun = time.process_time()
        first: int | None = 0
        while first is not None:
            observation, first = work.run(cell, first, progress)
            parts.append(observation)
        cpu, op = time.process_time() - begun, sum(o.raw_ns for o in parts) / 1e9
        found = [_outcome(part.to_json()) for part in parts]
        reply = {"cpu": cpu, "op": op, "cases": sum(o.cases for o in parts), "found": found}
        os.write(into, json.dumps(reply).encode() + b"\n")
    os._exit(0)


def _outcome(observation: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in observation.items() if not name.endswith("_ns")}


class Worker:
    """The suite of one checkout, in a process of its own."""

    def __init__(self, tree: Path, only: str) -> None:
        variables = os.environ | {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
        command = [sys.executable, __file__, "--serve", "--only", only]
        self._process = subprocess.Popen(
            command, cwd=tree, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.cells = int(self._line())
        self.cpu = self.op = 0.0
        self.cases = self.failing = 0

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline() or sys.exit("a worker has ended; run it alone: cell_cost.py 50")

    def run(self, stretch: int) -> tuple[float, list[Any]]:
        """Run a stretch; return its seconds of CPU time, and the outcomes of its cells."""
        assert self._process.stdin
        print(stretch, file=self._process.stdin, flush=True)
        replies: list[dict[str, Any]] = json.loads(self._line())
        cpu = sum(reply["cpu"] for reply in replies)
        self.cpu += cpu
        self.op += sum(reply["op"] for reply in replies)
        self.cases += sum(reply["cases"] for reply in replies)
        found = [reply["found"] for reply in replies]
        self.failing += sum(part.get("status") == "fail" for cell in found for part in cell)
        return cpu, found

    def row(self, name: str) -> str:
        """Return one line of figures."""
        each, inside = 1e6 * self.cpu / self.cases, 1e6 * self.op / self.cases
        return f"{name:<10} {self.cases:>8} {each:>12.0f} {inside:>9.0f} {self.op / self.cpu:>9.1%} {self.failing:>9}"


def main(count: int, other: Path | None, only: str) -> int:
    """Print a line for each tree, their ratio, and every cell that differs. The exit code is 1 if one does."""
    workers = {"this": Worker(HERE, only)} | ({"other": Worker(other, only)} if other else {})
    stretches = -(-min(worker.cells for worker in workers.values()) // STRETCH)
    chosen = random.Random(SEED).sample(range(stretches), min(stretches, count // STRETCH))
    differing: list[tuple[Any, Any]] = []
    ratios: list[float] = []
    for turn, stretch in enumerate(chosen):
        order = list(workers)[:: 1 if turn % 2 else -1]
        ran = {name: workers[name].run(stretch) for name in order}
        if other:
            (cpu, found), (other_cpu, other_found) = ran["this"], ran["other"]
            differing += [(a, b) for a, b in zip(found, other_found, strict=True) if a != b]
            ratios += [other_cpu / cpu] if cpu else []
    print(f"{'tree':<10} {'cases':>8} {'CPU us/case':>12} {'op us':>9} {'op share':>9} {'failing':>9}")
    print(*(worker.row(name) for name, worker in workers.items()), sep="\n")
    if not other:
        return 0
    whole, median = workers["other"].cpu / workers["this"].cpu, statistics.median(ratios)
    print(f"other / this: {whole:.2f}, median of stretches {median:.2f}; cells that differ: {len(differing)}")
    for a, b in differing:
        print(*(json.dumps(one) for one in (a, b)), sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="?", type=int, default=3000)
    parser.add_argument("--against", type=Path, metavar="TREE")
    parser.add_argument("--only", default="", metavar="WORD", help="overloads whose names contain WORD")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.only)
    else:
        sys.exit(main(given.cells, given.against, given.only))
