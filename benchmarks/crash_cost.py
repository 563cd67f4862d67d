"""What a death costs: ``crash_cost.py [CELLS]``, a run in which one cell of a hundred dies against one without deaths.

The cells are those of the reference NPU's smoke tier, 2,000 unless told otherwise; one of a hundred is of
``masked_fill``, which the planted fault ``crash_in_kernel`` kills. The runs take turns, three times each: without the
fault, with it, and with every death asked about (steady or flaky). The best counts, by the clock and in CPU time.
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
from conformance.plan.cases import TIERS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner
from conformance.running.deaths import SECONDS
from conformance.running.runner import Runner
from conformance.vocabulary import DEFAULT_SEED, CellId

FAULT = "crash_in_kernel"
DYING = ("masked_fill.Scalar", "masked_fill_.Scalar", "masked_fill.Tensor", "masked_fill_.Tensor")
ROUNDS = 3


def chosen(plan: Plan, count: int) -> list[CellId]:
    """``count`` cells, each hundredth of which the fault kills."""
    dying = [cell for name in DYING for cell in plan.cells(name)]
    others = (cell for name in plan.overloads() if name not in DYING for cell in plan.cells(name))
    cells: list[CellId] = []
    for at, cell in enumerate(islice(others, count)):
        cells.append(dying[at // 100 % len(dying)] if at % 100 == 50 else cell)
    return cells


def spent() -> float:
    """CPU seconds of this process and of the children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def run(work: CellRunner, cells: Sequence[CellId], fault: str | None, asked: bool) -> tuple[float, float, int]:
    """(seconds by the clock, CPU seconds, deaths) of all cells."""
    set_fault(fault)
    runner = Runner(work, 60, inquiry_s=SECONDS if asked else 0)
    started, before, deaths = time.perf_counter(), spent(), 0
    for cell in cells:
        deaths += sum(f.death is not None for f in runner.observe(cell).failures)
    runner.close()
    set_fault(None)
    return time.perf_counter() - started, spent() - before, deaths


def main(count: int) -> None:
    """Three lines: without deaths, with them, with them and asked about."""
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
