"""The trial of one fault, and the file of trials from which an interrupted run continues."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import contains
from pathlib import Path
from typing import Any, Protocol

from tools.kill_rate.reach import Reach

# The trial without any fault: every finding is a false alarm.
CLEAN = ""
QUICK = "quick"  # the stage that every lane has
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


@dataclass(frozen=True, slots=True)
class Part:
    """One of ``of`` processes that share the items of a stage. Each tries every fault on its own items."""

    index: int = 0
    of: int = 1

    def __str__(self) -> str:
        return f"{self.index}of{self.of}"

    @staticmethod
    def parse(text: str) -> Part:
        return Part(*map(int, text.split("of")))

    def share(self, plan: Sequence[str]) -> Sequence[str]:
        """Return the items of this part: each ``of``-th."""
        return plan[self.index :: self.of]

    def file(self, path: Path) -> Path:
        """Return this part's file of trials, ``path`` itself if there is one part."""
        return path if self.of == 1 else path.with_suffix(f".{self}{path.suffix}")

    @property
    def all(self) -> list[Part]:
        return [Part(index, self.of) for index in range(self.of)]


# The only process of a stage.
WHOLE = Part()


class Hunter(Protocol):
    """A set of checks. It does not know which fault is awake."""

    @property
    def plan(self) -> Sequence[str]:
        """Return the items to try, in order."""

    @property
    def untraced(self) -> Collection[str]:
        """Return the items that start processes. The faults that these processes ask for are not known."""

    def attempt(self, item: str) -> Finding | None:
        """Try one item. Return its finding, if any."""

    def rest(self) -> None:
        """End the processes of the attempts, so that the next fault starts with fresh ones."""


class Faults(Protocol):
    """The faults of a backend."""

    def wake(self, fault: str) -> None:
        """Wake a fault, or none."""

    def trace(self) -> Callable[[], set[str]] | None:
        """Put all to sleep. Return a function that returns the faults asked for since its last call, or None."""


def hunt(
    hunter: Hunter, fault: str, items: Sequence[str], cpu_s: Callable[[], float],
    after: Callable[[str], None] = lambda _: None, found_elsewhere: Callable[[], bool] = lambda: False,
) -> Trial:  # fmt: skip
    """Try the items up to the first finding; without a fault, all of them. ``after``: called after each item.

    The trial also ends once another process has found the fault.
    """
    started, spent = time.perf_counter(), cpu_s()
    findings: list[Finding] = []
    tried = 0
    for item in items:
        if found_elsewhere():
            break
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
        self.reach = path.with_suffix(".reach.json")  # the faults that the items of the trial without a fault ask for
        self._head = json.dumps(made_with, sort_keys=True)
        self.trials = {trial.fault: trial for trial in read(path)} if _head(path) == self._head else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._head, *(json.dumps(asdict(trial)) for trial in self.trials.values())]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")  # drops an incomplete last line

    def add(self, trial: Trial) -> None:
        self.trials[trial.fault] = trial
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trial)) + "\n")


class Kills:
    """The faults that other processes found, read from their files while they write them.

    A file of trials that were made with something else, for example another build, does not count.
    """

    def __init__(self, files: Iterable[Path], made_with: dict[str, Any]) -> None:
        self._head = json.dumps(made_with, sort_keys=True)
        self._found: dict[Path, tuple[int, frozenset[str]]] = {file: (0, frozenset()) for file in files}

    def __contains__(self, fault: object) -> bool:
        return any(fault in self._of(file) for file in self._found)

    def _of(self, file: Path) -> frozenset[str]:
        size = file.stat().st_size if file.exists() else 0
        if size != self._found[file][0]:
            trials = read(file) if _head(file) == self._head else []
            self._found[file] = size, frozenset(t.fault for t in trials if t.killed)
        return self._found[file][1]


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
    part: Part = WHOLE,
    elsewhere: Container[str] = (),
) -> None:
    """Run the trials that the file lacks: first without a fault, then each fault on the items that ask for it, or may.

    Items that fail without a fault are false alarms, and no fault is tried on them. ``elsewhere``: the faults that
    the other parts found, which need no trial here.
    """
    plan = part.share(hunter.plan)
    if CLEAN not in file.trials:
        tell(_clean(file, hunter, plan, faults, cpu_s))
    alarms = {f.where for f in file.trials[CLEAN].findings}
    quiet = [item for item in plan if item not in alarms]
    reach = Reach.load(file.reach)
    for fault in names:
        if fault in file.trials or fault in elsewhere:
            continue
        faults.wake(fault)
        try:
            items = reach.items(quiet, fault, hunter.untraced)
            trial = hunt(hunter, fault, items, cpu_s, found_elsewhere=partial(contains, elsewhere, fault))
        finally:
            faults.wake(CLEAN)
        file.add(trial)
        tell(trial)


def _clean(file: TrialFile, hunter: Hunter, plan: Sequence[str], faults: Faults, cpu_s: Callable[[], float]) -> Trial:
    """Try every item without a fault, and store the faults that each item asks for."""
    asked: dict[str, set[str]] = {}
    traced = faults.trace()
    try:
        trial = hunt(hunter, CLEAN, plan, cpu_s, lambda item: asked.update({item: traced()} if traced else {}))
    finally:
        faults.wake(CLEAN)
    if traced:
        Reach(asked).save(file.reach)
    else:
        file.reach.unlink(missing_ok=True)  # of another plan
    file.add(trial)
    return trial
