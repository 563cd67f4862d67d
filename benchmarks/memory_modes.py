"""The cost of each environment of a backend: ``memory_modes.py [MATRIX]``, for 1,000 additions of 64 x 64 floats.

Each environment of ``matrices/refnpu.toml`` (or MATRIX) runs in a process of its own. The best of several rounds
counts, with and without a verification of the backend's memory after each addition. The result is milliseconds, and the
ratio to the first environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from conformance.lanes import matrix

ROW = "{:<16} {:>8} {:>7} {:>10} {:>7}"
MEASURE = """
import json, sys, time
import torch
from conformance import backends

backend = backends.find(sys.argv[1])
torch.set_num_threads(1)
x, y = torch.ones(2, 64, 64, device=backend.device)

def best(check):
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(1000):
            x + y
            check()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)

print(json.dumps([best(backend.synchronize), best(backend.verify_memory)]))
"""


def measure(backend: str, environment: matrix.Environment) -> tuple[float, float]:
    """Return the milliseconds of the additions in one environment, without and with verifications."""
    command = [sys.executable, "-W", "ignore", "-c", MEASURE, backend]
    variables = os.environ | dict(environment.variables)
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    plain, verified = json.loads(done.stdout)
    return plain, verified


def main(file: Path) -> None:
    """Print a line for each environment."""
    found = matrix.load(file)
    print(ROW.format("environment", "adds ms", "ratio", "checked ms", "ratio"))
    first = 0.0
    for environment in found.environments:
        plain, verified = measure(found.backend, environment)
        first = first or plain
        print(
            ROW.format(
                environment.name, f"{plain:.1f}", f"{plain / first:.1f}", f"{verified:.1f}", f"{verified / first:.1f}"
            )
        )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "matrices/refnpu.toml"))
