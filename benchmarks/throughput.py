"""Cells per CPU-second of finished runs, and the share of their time spent in op calls: ``throughput.py [LANE ...]``.

Reads ``results/<lane>/summary.json``; without arguments, of every lane there is. Run the lanes first, for example with
``nox -s conformance-2.13``, on a machine that does nothing else.
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
    """A line for each lane. Exit code 2, and one line, when a lane has no summary."""
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
    """One lane's figures."""
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
