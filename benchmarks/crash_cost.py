"""The cost of a death: ``crash_cost.py [CELLS]`` compares a run in which 1 % of the cells die with one without deaths.

The cells are 2,000 (or CELLS) of the reference NPU's smoke tier. One in a hundred is of ``masked_fill``, which the
planted fault ``crash_in_kernel`` kills. Three kinds of runs take turns, three times each: without the fault, with it,
and with a check whether each death is steady or flaky. The best run counts, in wall and CPU time.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from itertools import islice

import torch
from refnpu.testing import set_fault

from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.running.cell_runner import CellRunner
from conformance.running.deaths import SECONDS
from conformance.running.runner import Runner
from conformance.vocabulary import DEFAULT_SEED, CellId

FAULT = "crash_in_kernel"
DYING = ("masked_fill.Scalar", "masked_fill_.Scalar", "masked_fill.Tensor", "masked_fill_.Tensor")
ROUNDS = 3


def chosen(plan: Plan, count: int) -> list[CellId]:
    """Return ``count`` cells. The fault kills each hundredth."""
    dying = [cell for name in DYING for cell in plan.cells(name)]
    others = (cell for name in plan.overloads() if name not in DYING for cell in plan.cells(name))
    cells: list[CellId] = []
    for at, cell in enumerate(islice(others, count)):
        cells.append(dying[at // 100 % len(dying)] if at % 100 == 50 else cell)
    return cells


def spent() -> float:
    """Return the CPU seconds of this process and its ended children."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def run(work: CellRunner, cells: Sequence[CellId], fault: str | None, asked: bool) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds and the number of deaths of all cells."""
    set_fault(fault)
    runner = Runner(work, 60, inquiry_s=SECONDS if asked else 0)
    started, before, deaths = time.perf_counter(), spent(), 0
    for cell in cells:
        deaths += sum(f.death is not None for f in runner.observe(cell).failures)
    runner.close()
    set_fault(None)
    return time.perf_counter() - started, spent() - before, deaths


def main(count: int) -> None:
    """Print three lines: without deaths, with deaths, and with deaths that are checked for being flaky."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    plan = Plan(backends.find("refnpu"), Selection(tier=TIERS["smoke"]), DEFAULT_SEED)
    work, cells = CellRunner(plan), chosen(plan, count)
    kinds = {"no deaths": (None, False), "deaths": (FAULT, False), "deaths, asked about": (FAULT, True)}
    best: dict[str, tuple[float, float, int]] = {}
    for _ in range(ROUNDS):
        for name, (fault, asked) in kinds.items():
            found = run(work, cells, fault, asked)
            best[name] = tuple(map(min, best.get(name, found), found))  # type: ignore[assignment]
    wall, cpu, _ = best["no deaths"]
    print(f"{'':<22} {'cells':>6} {'deaths':>6} {'s':>7} {'cpu s':>7} {'ms a death':>11} {'cpu ms':>7}")
    for name, (seconds, cpu_s, deaths) in best.items():
        each = [1000 * x / deaths if deaths else 0.0 for x in (seconds - wall, cpu_s - cpu)]
        print(f"{name:<22} {len(cells):>6} {deaths:>6} {seconds:>7.2f} {cpu_s:>7.2f} {each[0]:>11.1f} {each[1]:>7.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
