"""Whether ``conformance perf`` finds planted slowdowns: ``perf_faults.py [--seconds S] [--rounds R] [--results DIR]``.

Each fault of the class ``speed`` is awake in one run over its op and the ops next to it. Before and after each run with
a fault there is a run without a fault. A difference between these two runs is a false alarm. The benchmark prints for
each fault whether its op is found slower and first, its factor with the interval, and the number of cases of other ops
that are found slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from conformance.perf import diff, store
from conformance.perf.diff import Change, Compared
from conformance.perf.store import PerfRun

# The op that each fault slows down.
FAULTS = {
    "softmax_computes_rows_twice": "_softmax",
    "sigmoid_waits_before_launch": "sigmoid",
    "hardswish_by_fallback": "hardswish",
}
NEIGHBOURS = ("_log_softmax", "add.Tensor", "exp", "hardsigmoid", "mm", "silu", "sum.dim_IntList", "tanh")
ROW = "{:<30} {:>6} {:>6}  {:<34} {:>8} {:>6}"


def measured(fault: str, seconds: float, rounds: int, results: Path) -> PerfRun:
    """Return a run with a fault awake, or none."""
    overloads = ",".join((*FAULTS.values(), *NEIGHBOURS))
    command = [sys.executable, "-W", "ignore", "-m", "conformance.cli", "perf", "run", "--backend", "refnpu"]
    command += ["--overloads", overloads, "--seconds-per-case", str(seconds), "--rounds", str(rounds)]
    before = set(store.names(results))
    variables = os.environ | {"REFNPU_FAULT": fault}
    done = subprocess.run(
        [*command, "--results", str(results)], env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    (name,) = set(store.names(results)) - before
    return store.load(results / store.PERF / name)


def line(fault: str, old: PerfRun, new: PerfRun) -> str:
    """Return a line about a comparison, with the fault that is awake in ``new``, if any."""
    slower = diff.compare(old.records, new.records).of(Change.SLOWER)
    own = [c for c in slower if c.key.overload == FAULTS.get(fault)]
    first = bool(own) and slower[0] is own[0]
    others = len(slower) - len(own)
    words = ("-", "-") if not fault else ("yes" if own else "no", "yes" if first else "no")
    return ROW.format(fault or "none (false alarms)", *words, told(own), others, len(new.records))


def told(own: list[Compared]) -> str:
    """Return the largest factor of an op, with its size and interval."""
    if not own or own[0].interval is None:
        return "-"
    interval = own[0].interval
    return f"{own[0].key.size}: {interval.ratio:.2f} [{interval.low:.2f}, {interval.high:.2f}], {len(own)} of 3 sizes"


def main(seconds: float, rounds: int, results: Path) -> None:
    """Print a line for each fault, and for each pair of runs without one."""
    print(ROW.format("fault", "found", "first", "its largest factor", "others", "cases"), flush=True)
    clean = measured("", seconds, rounds, results)
    for fault in FAULTS:
        print(line(fault, clean, measured(fault, seconds, rounds, results)), flush=True)
        again = measured("", seconds, rounds, results)
        print(line("", clean, again), flush=True)
        clean = again


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each case")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=None, help="where the runs are kept; default: nowhere")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        main(given.seconds, given.rounds, given.results or Path(scratch))
