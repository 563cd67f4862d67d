"""``python -m tools.causes``: wake each planted fault, and compare the first cause with where the fault lies."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.lanes import matrix, process
from tools.causes import clean, outcome, trial
from tools.faults import with_results
from tools.kill_rate.options import add_publish, chosen, new_faults
from tools.kill_rate.session import clean as without_lanes

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "causes.json"
WORKER = "tools.causes.worker"


def main(arguments: list[str]) -> int:
    """Return 130 after Ctrl-C, 1 if a worker fails, else 0. The same command continues an interrupted measurement."""
    parser = argparse.ArgumentParser(prog="causes", description=__doc__)
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrices" / "refnpu.toml")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "causes", help="where trials are kept")
    parser.add_argument("--faults", default="", help="only these")
    parser.add_argument("--unmeasured", action="store_true", help="only faults that the published summary lacks")
    add_publish(parser)
    given = parser.parse_args(arguments)
    found = matrix.load(given.matrix)
    every = tuple(with_results(ROOT / found.project))
    faults = _faults(given, every, found.main_torch.version)
    if not faults:
        print(f"{PUBLISHED.name} covers all {len(every)} faults: nothing to measure")
        if given.publish:
            _write(outcome.restricted(_published(), every))
        return 0
    if code := _work(found, faults, given.results):
        return code
    made = _summary(given.results, faults if given.unmeasured else every, found.main_torch.version)
    print(
        f"{made['right']} right, {made['wrong']} wrong, {made['unseen']} of {made['faults']} faults make no cell fail"
    )
    if given.publish:
        _write(outcome.joined(_published(), made, every) if given.unmeasured else made)
    return 0


def _faults(given: argparse.Namespace, every: tuple[str, ...], torch: str) -> tuple[str, ...]:
    """Return the faults to measure. Exits if ``--publish`` could not publish them."""
    if not given.unmeasured:
        faults = chosen("fault", given.faults, every)
        if given.publish and set(faults) != set(every):
            sys.exit(
                f"causes: --publish replaces {PUBLISHED.name}, which covers all faults, and --faults leaves some out. "
                "Leave out --publish; or add --unmeasured, which adds new faults to that file"
            )
        return faults
    there = _published()
    if given.publish and there["torch"] != torch:
        sys.exit(f"causes: {PUBLISHED.name} is of torch {there['torch']}, not {torch}: measure without --unmeasured")
    return new_faults(given.faults, there, every, PUBLISHED.name)


def _published() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return made


def _write(made: Mapping[str, Any]) -> None:
    PUBLISHED.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


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
