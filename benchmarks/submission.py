"""What submission costs when work is late: ``submission.py [--rounds N]``, for additions of vectors of floats.

Each mode of the reference NPU runs in a process of its own, and so does CPU, which executes each call before it
returns. All processes start before the first measurement, and the rounds alternate between them. The benchmark prints
the medians of the microseconds until a call returns and until its work is done, for queues of 100 calls, and the ratios
to ``synchronous``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

MODES: dict[str, tuple[str, dict[str, str]]] = {
    "synchronous": ("npu", {}),
    "late": ("npu", {"REFNPU_LATE": "1"}),
    "lazy": ("npu", {"REFNPU_LAZY": "1"}),
    "CPU": ("cpu", {}),
}
SIZES = (16, 16_384, 1_048_576)
CALLS = 100
ROW = "{:<12} {:>10} {:>12} {:>7} {:>12} {:>7}"
# Reads one size per line, and answers with the seconds until the calls returned and until their work was done.
MEASURE = f"""
import json, sys, time
import torch

device = sys.argv[1]
if device == "npu":
    import refnpu
torch.set_num_threads(1)
wait = torch.npu.synchronize if device == "npu" else lambda: None
for line in sys.stdin:
    x, y, out = torch.ones(3, int(line), device=device)
    wait()
    start = time.perf_counter()
    for _ in range({CALLS}):
        torch.add(x, y, out=out)
    returned = time.perf_counter()
    wait()
    print(json.dumps([returned - start, time.perf_counter() - start]), flush=True)
"""


def started(device: str, variables: dict[str, str]) -> subprocess.Popen[str]:
    """Return a process that measures one mode."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFNPU_")}
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, device]
    return subprocess.Popen(
        command, env=clean | variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )


def asked(process: subprocess.Popen[str], size: int) -> tuple[float, float]:
    """Return the microseconds per call of one round, until the calls returned and until their work was done."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{size}\n")
    returned, done = json.loads(process.stdout.readline())
    return 1e6 * returned / CALLS, 1e6 * done / CALLS


def medians(rounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the median of each of two columns."""
    returned, done = zip(*rounds, strict=True)
    return statistics.median(returned), statistics.median(done)


def main(rounds: int) -> None:
    """Print a line for each size and mode."""
    processes = {mode: started(*how) for mode, how in MODES.items()}
    for process in processes.values():
        asked(process, SIZES[0])  # the first calls load what they need
    print(ROW.format("mode", "elements", "returns us", "ratio", "done us", "ratio"))
    for size in SIZES:
        taken: dict[str, list[tuple[float, float]]] = {mode: [] for mode in processes}
        for _ in range(rounds):
            for mode, process in processes.items():
                taken[mode].append(asked(process, size))
        base = medians(taken["synchronous"])
        for mode, found in taken.items():
            returned, done = medians(found)
            ratios = f"{returned / base[0]:.2f}", f"{done / base[1]:.2f}"
            print(ROW.format(mode, f"{size:,}", f"{returned:.1f}", ratios[0], f"{done:.1f}", ratios[1]))
    for process in processes.values():
        process.communicate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    main(parser.parse_args().rounds)
