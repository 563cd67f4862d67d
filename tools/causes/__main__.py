"""``python -m tools.causes``: wake each planted fault, and compare the first cause with where the fault lies."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from conformance.lanes import matrix, process
from tools.causes import clean, outcome, trial
from tools.faults import with_results
from tools.kill_rate.options import chosen
from tools.kill_rate.session import clean as without_lanes

ROOT = Path(__file__).parents[2]
WORKER = "tools.causes.worker"


def main(arguments: list[str]) -> int:
    """Return 130 after Ctrl-C, 1 if a worker fails, else 0. The same command continues an interrupted measurement."""
    parser = argparse.ArgumentParser(prog="causes", description=__doc__)
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrices" / "refnpu.toml")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "causes", help="where trials are kept")
    parser.add_argument("--faults", default="", help="only these")
    parser.add_argument("--publish", action="store_true", help="write the summary where the docs take it from")
    given = parser.parse_args(arguments)
    found = matrix.load(given.matrix)
    every = tuple(with_results(ROOT / found.project))
    code = _work(found, chosen("fault", given.faults, every), given.results)
    if code:
        return code
    made = _summary(given.results, every, found.main_torch.version)
    print(
        f"{made['right']} right, {made['wrong']} wrong, {made['unseen']} of {made['faults']} faults make no cell fail"
    )
    if given.publish:
        (ROOT / "docs" / "causes.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


def _work(found: matrix.Matrix, faults: tuple[str, ...], results: Path) -> int:
    """Run the worker in the first lane. Return its exit code."""
    lane = next(lane for lane in found.lanes() if lane.torch == found.main_torch)
    start = process.start(ROOT, lane.name)
    results.mkdir(parents=True, exist_ok=True)
    command = [start.python, "-W", "ignore", "-m", WORKER, found.module, lane.backend, str(results), *faults]
    return subprocess.run(command, cwd=ROOT, env=without_lanes(lane.backend) | start.variables, check=False).returncode


def _summary(results: Path, faults: tuple[str, ...], torch: str) -> dict[str, Any]:
    return outcome.summary(faults, trial.load(results, faults), clean.load(results / clean.FILE), torch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
