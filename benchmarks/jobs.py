"""``--jobs N`` against pytest-xdist's ``-n N``: ``jobs.py [N] [ROUNDS]`` runs refnpu's smoke tier with each in turn.

The result is the median wall time, CPU time and collection time, and the ratio of each to ``-n N``. Run it in the
environment of a lane on an idle machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from conformance.results import store
from conformance.support.machine import cores

FIGURES = ("wall_s", "cpu_s", "collect_s")
ROW = "{:<10}" + " {:>10} {:>6}" * len(FIGURES)


def main(count: int, rounds: int) -> int:
    """Print a line for each option."""
    ways = [("-n", str(count)), ("--jobs", str(count)), ("--jobs", "1")]
    seen: dict[tuple[str, str], list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            seen[way].append(measured(way))
    found = {way: {name: median(one[name] for one in of) for name in FIGURES} for way, of in seen.items()}
    print(ROW.format("way", *(word for name in FIGURES for word in (name, "ratio"))))
    for way, figures in found.items():
        pairs = [(f"{figures[n]:.1f}", f"{figures[n] / found[ways[0]][n]:.2f}") for n in FIGURES]
        print(ROW.format(" ".join(way), *(word for pair in pairs for word in pair)))
    return 0


def measured(way: tuple[str, str]) -> dict[str, float]:
    """Return the figures of one run's summary."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "conformance"]
        command += ["--backend", "refnpu", "--tier", "smoke", "--lane-name", "lane", "--results", scratch, *way]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        summary = store.read_summary(Path(scratch) / "lane")
    return {name: float(summary[name]) for name in FIGURES}


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*[*given, *(cores(), 3)[len(given) :]]))
