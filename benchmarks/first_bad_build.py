"""Whether bisect names the commit that broke a backend, with true builds: ``first_bad_build.py DIRECTORY [SEARCH]...``.

In DIRECTORY it makes a history of 64 commits of the reference NPU's sources, each a small edit, 5 of which do not
compile until the next one. One commit makes `floor` wrong, one makes `ceil` wrong in 30 % of processes, and one repairs
`trunc`, which is wrong from the first. The searches: ``always``, ``flaky`` and ``fixed`` look for these with both ends
given, ``together`` for the first two at once, ``back`` for the first without ends. For each: whether it named the
commit, how sure it was, points tried, those that were skipped, backends built, runs of a case, and what it cost. A
second search in the same DIRECTORY finds the builds of the first; ccache shortens the others.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.first_bad import git

ROOT = Path(__file__).parents[1]
COMMITS, BROKEN, SEED = 64, 5, 20
KERNELS = Path("backend/kernels")
REAL = KERNELS / "unary_real.cpp"
EDITED = [KERNELS / f"{name}.cpp" for name in ("cat", "fill", "gemm", "loss", "norm", "scan", "softmax", "sort")]
EDITS = (
    'static_assert(sizeof(float) == 4, "change {n}");',
    "[[maybe_unused]] constexpr int kChange{n} = {n};",
    "[[maybe_unused]] inline long twice{n}(long x) {{ return x + x; }}",
    "// Change {n}: this comment.",
)
UNBUILDABLE = "inline int change{n}() {{ return not_declared(); }}"
RIGHT = {name: f"return unary<T>([](T x) {{ return std::{name}(x); }});" for name in ("floor", "ceil", "trunc")}
WRONG = {
    "floor": RIGHT["trunc"],
    "ceil": "return unary<T>([](T x) { return unlucky() ? std::floor(x) : std::ceil(x); });",
    "trunc": RIGHT["floor"],
}
UNLUCKY = """\
// Once a process.
inline bool unlucky() {
  static const bool found = std::random_device{}() % 10 < 3;
  return found;
}
"""
CASE = "ops/pointwise_unary.py::{op}[float32-contiguous]#opinfo.{op}.50dfe29c"


@dataclass(frozen=True)
class History:
    """What was planted where, as numbers of commits; 0 is the oldest."""

    commits: tuple[str, ...]
    culprits: Mapping[str, int]  # op -> the commit that changes whether it is right
    broken: frozenset[int]


SEARCHES = {
    "always": (("floor",), True), "flaky": (("ceil",), True), "fixed": (("trunc",), True),
    "together": (("floor", "ceil"), True), "back": (("floor",), False),
}  # fmt: skip


def make(where: Path) -> History:
    """The history, made once."""
    dice = random.Random(SEED)
    culprits = dict(zip(("floor", "ceil", "trunc"), dice.sample(range(8, COMMITS - 4, 3), 3)))
    taken = {c + d for c in culprits.values() for d in (-1, 0, 1)}
    broken = frozenset(dice.sample([i for i in range(2, COMMITS - 2, 2) if not {i, i + 1} & taken], BROKEN))
    if not where.is_dir():
        where.mkdir(parents=True)
        git(where, "init", "-q", "-b", "main")
        archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD", "backend"], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", where], input=archive.stdout, check=True)
        for i in range(COMMITS):
            _edit(where, i, culprits, broken, dice)
            git(where, "add", "-A")
            git(where, "commit", "-qm", f"change {i}")
    return History(tuple(git(where, "log", "--reverse", "--format=%H").split()), culprits, broken)


def _edit(where: Path, i: int, culprits: Mapping[str, int], broken: frozenset[int], dice: random.Random) -> None:
    """The change that commit ``i`` is."""
    if i == 0:
        _replace(where / REAL, "template <class T>\nRow arithmetic", f"{UNLUCKY}\ntemplate <class T>\nRow arithmetic")
        _replace(where / REAL, "#include <numbers>\n", "#include <numbers>\n#include <random>\n")
        _replace(where / REAL, f"Unary::trunc:\n      {RIGHT['trunc']}", f"Unary::trunc:\n      {WRONG['trunc']}")
        return
    for op in (op for op, culprit in culprits.items() if culprit == i):
        old, new = (WRONG, RIGHT) if op == "trunc" else (RIGHT, WRONG)
        _replace(where / REAL, f"Unary::{op}:\n      {old[op]}", f"Unary::{op}:\n      {new[op]}")
        return
    if i - 1 in broken:
        for file in EDITED:
            text = (where / file).read_text()
            (where / file).write_text(text.replace(UNBUILDABLE.format(n=i - 1), EDITS[0].format(n=i)))
        return
    file = where / dice.choice(EDITED)
    line = UNBUILDABLE if i in broken else dice.choice(EDITS)
    _replace(file, "namespace refnpu {\nnamespace {\n", f"namespace refnpu {{\nnamespace {{\n{line.format(n=i)}\n")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: expected once: {old}"
    file.write_text(text.replace(old, new))


def search(directory: Path, history: History, name: str) -> str:
    """A line of the table."""
    ops, ends = SEARCHES[name]
    fixed = name == "fixed"
    out, cache = directory / f"out-{name}", directory / "cache"
    command = [sys.executable, "-m", "conformance.cli", "bisect", *(CASE.format(op=op) for op in ops)]
    command += ["--axis", "backend", "--repository", str(directory / "history"), "--cache", str(cache)]
    command += ["--matrix", "matrices/refnpu.toml", "--torch", "2.13", "--out", str(out), "--tries", "30"]
    oldest, newest = history.commits[0], history.commits[-1]
    good, bad = (newest, oldest) if fixed else (oldest, newest)
    command += ["--good", good, "--bad", bad, *["--fixed"][: int(fixed)]] if ends else []
    (out / "state.json").unlink(missing_ok=True)
    built, spent, started = _built(cache), _cpu(), time.monotonic()
    with (directory / f"{name}.log").open("w") as log:
        subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
    seconds, cpu = time.monotonic() - started, _cpu() - spent
    facts = json.loads((out / "result.json").read_text())
    said = [_verdict(case, history.commits[history.culprits[op]]) for op, case in zip(ops, facts["cases"])]
    steps = facts["cases"][0]["steps"]
    skipped = sum(bool(step["unusable"]) for step in steps)
    runs = " + ".join(str(sum(s["failed"] + s["passed"] + s["unknown"] for s in c["steps"])) for c in facts["cases"])
    counts = f"{len(steps):>6} {skipped:>7} {_built(cache) - built:>6} {runs:>8} {seconds:>7.0f} {cpu:>7.0f}"
    return f"{name:<9} {' + '.join(said):<30} {counts}"


def _verdict(case: Mapping[str, str], culprit: str) -> str:
    if case["kind"] != "culprit":
        return str(case["kind"])
    return f"{'right' if culprit.startswith(case['after']) else 'wrong'} {float(case['confidence']):.1%}"


def _built(cache: Path) -> int:
    return sum(1 for _ in cache.glob("backends/*/ready.json"))


def _cpu() -> float:
    """Seconds, of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(directory: Path, names: list[str]) -> None:
    """A line for each search."""
    history = make(directory / "history")
    print(f"{'':<9} {'named':<30} {'points':>6} {'skipped':>7} {'builds':>6} {'runs':>8} {'s':>7} {'cpu s':>7}")
    for name in names or SEARCHES:
        print(search(directory, history, name), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
