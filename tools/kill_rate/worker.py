"""The process of one lane or one peer. It never uses the device, and forks for every fault.

``python -m tools.kill_rate.worker MODULE BACKEND HUNTER FILE PART FAULT...``; the session sets the environment.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from conformance import backends
from conformance.running.child import tie_to
from tools.kill_rate.forked import ForkedHunter
from tools.kill_rate.hazard_hunter import HazardHunter
from tools.kill_rate.suite_hunter import STAGES, SuiteHunter
from tools.kill_rate.trial import CLEAN, HAZARDS, QUICK, Hunter, Kills, Part, Trial, TrialFile, fill

CELL_TIMEOUT = 60.0  # as in a run of the suite: a busy machine is slow
# Of the quick stage. There, each lane waits for the fault that hangs, in a scenario, which has five times this limit.
QUICK_TIMEOUT = 20.0
HAZARD_TIMEOUT = 60.0


def main(module: str, name: str, hunter: str, path: str, share: str, *faults: str) -> int:
    """Run the trials that the file lacks, and print a line for each. Return 130 after Ctrl-C, else 0."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    backend = backends.find(name)
    info = backend.build_info()
    made_with = {"torch": torch.__version__, "build": info.get("commit", ""), "hunter": hunter}
    part, whole = Part.parse(share), Path(path).resolve()  # a hunter may need another working directory

    def measure(found: Hunter) -> int:
        plan = hashlib.sha256("\n".join(found.plan).encode()).hexdigest()[:16]
        mine = part.file(whole)
        made_here = made_with | {"plan": plan}
        file = TrialFile(mine, made_here)
        elsewhere = Kills((p.file(whole) for p in part.all if p != part), made_here)
        try:
            fill(file, found, faults, Planted(module), cpu_s, lambda t: tell(mine.stem, t), part, elsewhere)
        except KeyboardInterrupt:
            return 130
        finally:
            found.rest()
        return 0

    return use(hunter, backend, measure)


class Planted:
    """The faults of a backend, through its module ``testing``. The module need not be able to trace them."""

    def __init__(self, module: str) -> None:
        self._testing = importlib.import_module(f"{module}.testing")

    def wake(self, fault: str) -> None:
        self._testing.set_fault(fault or None)

    def trace(self) -> Callable[[], set[str]] | None:
        trace: Callable[[], Callable[[], set[str]]] | None = getattr(self._testing, "trace_faults", None)
        return trace() if trace else None


def use(hunter: str, backend: backends.Capabilities, measure: Callable[[Hunter], int]) -> int:
    """Call ``measure`` with the hunter of this name: a stage of the suite, the hazards, or a peer."""
    if hunter in STAGES:
        return measure(SuiteHunter(backend, hunter, QUICK_TIMEOUT if hunter == QUICK else CELL_TIMEOUT))
    if hunter == HAZARDS:
        return measure(HazardHunter(backend, HAZARD_TIMEOUT))
    peer = importlib.import_module(f"tools.kill_rate.{hunter}")  # a peer's samples take seconds to import
    timeout = getattr(peer, "TIMEOUT", CELL_TIMEOUT)
    if hasattr(peer, "collect"):  # its tests exist only while a session of its own lasts
        return int(peer.collect(backend, lambda checks: measure(ForkedHunter(checks, timeout))))
    return measure(ForkedHunter(peer.checks(backend), timeout))


def cpu_s() -> float:
    """Return the CPU seconds of this process and its ended children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def tell(name: str, trial: Trial) -> None:
    """Print one line about a trial."""
    killed = trial.killed
    if trial.fault == CLEAN:
        said = f"no fault: {len(trial.findings)} false alarms in {trial.tried} items"
    else:
        said = f"{trial.fault}: " + (f"{killed.check} in {killed.where}" if killed else "survives")
    print(f"{name}: {said} ({trial.seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    tie_to(os.getppid())  # a killed session leaves no worker behind
    sys.exit(main(*sys.argv[1:]))
