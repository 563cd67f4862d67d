"""The modules that a process that runs cells loads, the time at which it does, and the operators that it knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner

# Writes the modules that the first cell of a process loads: each of hundreds of children would load them again.
FIRST_CELL = """
import sys
from pathlib import Path

from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CellId

work = CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))
work.prepare()
before = set(sys.modules)
runs = work.run
def run(*given):
    ran = runs(*given)
    Path(sys.argv[1]).write_text(" ".join(sorted(set(sys.modules) - before)))
    return ran
work.run = run
observed = Runner(work, timeout=600).observe(CellId.parse("ops/activation.py::softplus[float32-contiguous]"))
assert observed.status.value == "pass", observed
"""


def test_the_first_cell_of_a_child_loads_no_module(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    command = [sys.executable, "-c", FIRST_CELL, str(loaded)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert loaded.read_text(encoding="utf-8") == ""


def test_the_calls_of_a_native_stack_are_named_by_their_operators() -> None:
    work = CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))
    calls = ["_copy_from", "_copy_from_and_resize", "add__Tensor", "add_Tensor", "add_out", "no_such_op"]
    assert work.operators(calls) == ("_copy_from", "_copy_from_and_resize", "add_", "add")
