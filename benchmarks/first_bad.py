"""`conformance bisect` against ``git bisect run`` on generated histories: ``first_bad.py [TRIALS]``.

A history has 64 commits, 5 of which do not build. From one commit on, a different one in each trial, a check fails in
30 % of its runs. ``git bisect run`` runs the check once or ten times at each commit, and gets 125 if the commit does
not build. The result counts the trials that named the right commit, a wrong one, or none, and gives the runs of the
check and the seconds of a trial.
"""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

COMMITS, BROKEN, RATE = 64, 5, 0.3
CHECK = """
import pathlib, random, sys
log, first, times = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if not pathlib.Path("builds").exists():
    sys.exit(125)
bad = int(pathlib.Path("value").read_text()) >= first
for _ in range(times):
    with log.open("a") as file:
        file.write("x")
    if bad and random.random() < {rate}:
        sys.exit("wrong result")
"""


def git(where: Path, *arguments: str) -> str:
    """Return git's output."""
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    return subprocess.run(["git", *who, *arguments], cwd=where, capture_output=True, text=True, check=False).stdout


def history(where: Path, broken: set[int]) -> list[str]:
    """Create a repository, and return its commits, the oldest first. The file ``value`` has a commit's number."""
    git(where, "init", "-q", "-b", "main")
    for i in range(COMMITS):
        (where / "value").write_text(str(i))
        (where / "builds").unlink(missing_ok=True) if i in broken else (where / "builds").touch()
        git(where, "add", "-A")
        git(where, "commit", "-qm", f"change {i}")
    return git(where, "log", "--reverse", "--format=%h", "--abbrev=10").split()


def ours(where: Path, check: list[str], commits: list[str], scratch: Path) -> str:
    """Return the commit that `conformance bisect` names; "" for a range or none."""
    command = [sys.executable, "-m", "conformance.cli", "bisect", "--axis", "backend", "--script"]
    command += [shlex.join([*check, "1"]), "--repository", str(where), "--good", commits[0], "--bad", commits[-1]]
    command += ["--out", str(scratch / "out"), "--cache", str(scratch / "cache"), "--tries", "30"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"first bad (?:\S+ \()?([0-9a-f]{10})", said)
    return found[1] if found else ""


def gits(where: Path, check: list[str], commits: list[str], times: int) -> str:
    """Return the commit that ``git bisect run`` names; "" if it names several."""
    git(where, "bisect", "start", commits[-1], commits[0])
    said = git(where, "bisect", "run", *check, str(times))
    git(where, "bisect", "reset")
    found = re.search(r"([0-9a-f]{40}) is the first bad commit", said)
    return found[1][:10] if found else ""


def trial(seed: int) -> dict[str, tuple[str, int, float]]:
    """Return for each kind of search: right, wrong or none; the runs of the check; seconds."""
    dice = random.Random(seed)
    first = dice.randrange(3, COMMITS - 2)
    broken = set(dice.sample([i for i in range(1, COMMITS - 1) if i not in (first - 1, first)], BROKEN))
    found: dict[str, tuple[str, int, float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        where = scratch / "repository"
        where.mkdir()
        commits = history(where, broken)
        (scratch / "check.py").write_text(CHECK.format(rate=RATE))
        ways: dict[str, Callable[[list[str]], str]] = {
            "conformance bisect": lambda check: ours(where, check, commits, scratch),
            "git bisect run": lambda check: gits(where, check, commits, 1),
            "git bisect run, 10 times": lambda check: gits(where, check, commits, 10),
        }
        for name, search in ways.items():
            log = scratch / "log"
            log.write_text("")
            started = time.perf_counter()
            named = search([sys.executable, str(scratch / "check.py"), str(log), str(first)])
            outcome = "right" if named == commits[first] else "wrong" if named else "none"
            found[name] = (outcome, len(log.read_text()), time.perf_counter() - started)
    return found


def main(trials: int) -> None:
    """Print a line for each kind of search."""
    outcomes: dict[str, Counter[str]] = {}
    runs: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for seed in range(trials):
        for name, (outcome, ran, took) in trial(seed).items():
            outcomes.setdefault(name, Counter())[outcome] += 1
            runs[name] += ran
            seconds[name] += took  # type: ignore[assignment]  # a Counter can add floats
    print(f"{'':<26} {'right':>6} {'wrong':>6} {'none':>6} {'runs':>7} {'s':>7}")
    for name, seen in outcomes.items():
        counts = " ".join(f"{seen[key]:>6}" for key in ("right", "wrong", "none"))
        print(f"{name:<26} {counts} {runs[name] / trials:>7.1f} {seconds[name] / trials:>7.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
