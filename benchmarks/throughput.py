"""Cells per CPU-second of finished runs, and the share of op calls in their time: ``throughput.py [LANE ...]``.

The benchmark reads ``results/<lane>/summary.json`` of the given lanes, by default of all. Run the lanes first, for
example with ``nox -s conformance-2.13``, on an idle machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from conformance.results import store

RESULTS = Path("results")
ROW = "{:<40} {:>8} {:>9} {:>8} {:>8} {:>9} {:>11} {:>9} {:>9}"
HEAD = ("lane", "cells", "cases", "wall s", "CPU s", "collect s", "cells/CPU s", "cases/CPU s", "op share")


def main(lanes: list[str]) -> int:
    """Print a line for each lane. Return 2 if a lane has no summary, else 0."""
    names = lanes or sorted(path.parent.name for path in RESULTS.glob(f"*/{store.SUMMARY}"))
    print(ROW.format(*HEAD))
    for name in names:
        try:
            print(line(store.read_summary(RESULTS / name)))
        except store.StoreError as e:
            print(f"Error: {e}", file=sys.stderr)
            return 2
    return 0


def line(summary: dict[str, Any]) -> str:
    """Return the figures of one lane."""
    cpu_s = summary["cpu_s"] or float("nan")
    return ROW.format(
        summary["lane"],
        summary["cells"],
        summary["cases"],
        f"{summary['wall_s']:.1f}",
        f"{cpu_s:.1f}",
        f"{summary['collect_s']:.2f}",
        f"{summary['cells'] / cpu_s:.1f}",
        f"{summary['cases'] / cpu_s:.1f}",
        f"{100 * summary['raw_call_share']:.1f} %",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
