"""The trial of one fault, and the file of trials from which an interrupted run continues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tools.kill_rate.reach import Reach

# The trial without any fault: every finding is a false alarm.
CLEAN = ""
# The stage that runs hazards in place of cells.
HAZARDS = "hazards"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the check, the item of the plan, and the text."""

    check: str
    where: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The trial of one fault: the plan up to the first finding; without a fault, the whole plan."""

    fault: str
    tried: int  # items of the plan
    seconds: float  # by the clock
    cpu_s: float  # of all processes
    findings: tuple[Finding, ...] = ()

    @property
    def killed(self) -> Finding | None:
        """The finding that ended the trial; None for a survivor."""
        return self.findings[0] if self.findings else None

    @staticmethod
    def from_json(d: dict[str, Any]) -> Trial:
        findings = tuple(Finding(**f) for f in d.pop("findings"))
        return Trial(**d, findings=findings)


class Hunter(Protocol):
    """A set of checks. It does not know which fault is awake."""

    @property
    def plan(self) -> Sequence[str]:
        """Return the items to try, in order."""

    def attempt(self, item: str) -> Finding | None:
        """Try one item. Return its finding, if any."""

    def rest(self) -> None:
        """End the processes of the attempts, so that the next fault starts with fresh ones."""


class Faults(Protocol):
    """The faults of a backend."""

    def wake(self, fault: str) -> None:
        """Wake a fault, or none."""

    def trace(self) -> Callable[[], set[str]] | None:
        """Let all sleep. Return a function that returns the faults asked for since its last call, if there is one."""


def hunt(
    hunter: Hunter, fault: str, items: Sequence[str], cpu_s: Callable[[], float],
    after: Callable[[str], None] = lambda _: None,
) -> Trial:  # fmt: skip
    """Try the items up to the first finding; without a fault, all of them. ``after``: called after each."""
    started, spent = time.perf_counter(), cpu_s()
    findings: list[Finding] = []
    tried = 0
    for item in items:
        tried += 1
        found = hunter.attempt(item)
        after(item)
        findings += [found] if found else []
        if found and fault != CLEAN:
            break
    hunter.rest()
    seconds = time.perf_counter() - started
    return Trial(fault, tried, round(seconds, 3), round(cpu_s() - spent, 3), tuple(findings))


class TrialFile:
    """A file of trials of one hunter. Its first line says how they were made; each trial is appended when done."""

    def __init__(self, path: Path, made_with: dict[str, Any]) -> None:
        self._path = path
        self.reach = path.with_suffix(".reach.json")  # which items of the trial without a fault ask for which
        self._head = json.dumps(made_with, sort_keys=True)
        self.trials = {trial.fault: trial for trial in read(path)} if _head(path) == self._head else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._head, *(json.dumps(asdict(trial)) for trial in self.trials.values())]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")  # drops an incomplete last line

    def add(self, trial: Trial) -> None:
        self.trials[trial.fault] = trial
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trial)) + "\n")


def read(path: Path) -> list[Trial]:
    """Return the trials of a file, none if it does not exist. An incomplete last line is ignored."""
    lines = path.read_text(encoding="utf-8").split("\n")[1:-1] if path.is_file() else []
    return [Trial.from_json(json.loads(line)) for line in lines]


def _head(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0] if path.is_file() else ""


def fill(
    file: TrialFile,
    hunter: Hunter,
    names: Iterable[str],
    faults: Faults,
    cpu_s: Callable[[], float],
    tell: Callable[[Trial], None],
) -> None:
    """Run the trials that the file lacks: first without a fault, then each fault on the items that ask for it.

    Items that fail without a fault are false alarms, and no fault is tried on them.
    """
    if CLEAN not in file.trials:
        tell(_clean(file, hunter, faults, cpu_s))
    alarms = {f.where for f in file.trials[CLEAN].findings}
    quiet = [item for item in hunter.plan if item not in alarms]
    reach = Reach.load(file.reach)
    for fault in names:
        if fault in file.trials:
            continue
        faults.wake(fault)
        try:
            trial = hunt(hunter, fault, reach.items(quiet, fault), cpu_s)
        finally:
            faults.wake(CLEAN)
        file.add(trial)
        tell(trial)


def _clean(file: TrialFile, hunter: Hunter, faults: Faults, cpu_s: Callable[[], float]) -> Trial:
    """Try every item without a fault, and keep which faults each asks for."""
    asked: dict[str, set[str]] = {}
    traced = faults.trace()
    try:
        trial = hunt(hunter, CLEAN, hunter.plan, cpu_s, lambda item: asked.update({item: traced()} if traced else {}))
    finally:
        faults.wake(CLEAN)
    if traced:
        Reach(asked).save(file.reach)
    else:
        file.reach.unlink(missing_ok=True)  # of another plan
    file.add(trial)
    return trial
