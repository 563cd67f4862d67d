"""Bisect of a backend's history with real builds: ``first_bad_build.py DIRECTORY [SEARCH]...``.

The benchmark creates a history of 64 commits of the reference NPU's sources in DIRECTORY, each with a small edit. 5
commits do not compile: those that a binary search tests first. One commit breaks `floor`, one breaks `ceil` in 30 % of
processes, and one repairs `trunc`, which is wrong from the start. The searches ``always``, ``flaky`` and ``fixed`` look
for one of these with both ends given, ``together`` for the first two at once, ``back`` for the first without ends.

The result of each search: whether it named the commit, its confidence, the points tried and skipped, the backends
built, the runs of a case, and the time. A search uses the builds of earlier searches, and ccache shortens new ones.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.first_bad import git

ROOT = Path(__file__).parents[1]
COMMITS, SEED = 64, 20
CULPRITS = {"floor": 20, "ceil": 40, "trunc": 26}  # op -> the commit that breaks or repairs it; 0 is the oldest
BROKEN = (7, 15, 23, 31, 47)
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
SEARCHES = {
    "always": (("floor",), True), "flaky": (("ceil",), True), "fixed": (("trunc",), True),
    "together": (("floor", "ceil"), True), "back": (("floor",), False),
}  # fmt: skip


def make(where: Path) -> list[str]:
    """Return the history's commits, the oldest first. The history is created once."""
    if not where.is_dir():
        where.mkdir(parents=True)
        git(where, "init", "-q", "-b", "main")
        archive = subprocess.run(["git", "-C", ROOT, "archive", "HEAD", "backend"], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", where], input=archive.stdout, check=True)
        dice = random.Random(SEED)
        for i in range(COMMITS):
            _edit(where, i, dice)
            git(where, "add", "-A")
            git(where, "commit", "-qm", f"change {i}")
    return git(where, "log", "--reverse", "--format=%H").split()


def _edit(where: Path, i: int, dice: random.Random) -> None:
    """Make the change of commit ``i``."""
    changed = next((op for op, culprit in CULPRITS.items() if culprit == i), "")
    if i == 0:
        _replace(where / REAL, "template <class T>\nRow arithmetic", f"{UNLUCKY}\ntemplate <class T>\nRow arithmetic")
        _replace(where / REAL, "#include <numbers>\n", "#include <numbers>\n#include <random>\n")
        _replace(where / REAL, f"Unary::trunc:\n      {RIGHT['trunc']}", f"Unary::trunc:\n      {WRONG['trunc']}")
    elif changed:
        old, new = (WRONG, RIGHT) if changed == "trunc" else (RIGHT, WRONG)
        _replace(where / REAL, f"Unary::{changed}:\n      {old[changed]}", f"Unary::{changed}:\n      {new[changed]}")
    elif i - 1 in BROKEN:
        (broken,) = (f for f in EDITED if "not_declared" in (where / f).read_text())
        _replace(where / broken, UNBUILDABLE.format(n=i - 1), EDITS[0].format(n=i))
    else:
        line = (UNBUILDABLE if i in BROKEN else dice.choice(EDITS)).format(n=i)
        begin = "namespace refnpu {\nnamespace {\n"
        _replace(where / dice.choice(EDITED), begin, f"{begin}{line}\n")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: expected once: {old}"
    file.write_text(text.replace(old, new))


def search(directory: Path, commits: list[str], name: str) -> str:
    """Return a row of the table."""
    ops, ends = SEARCHES[name]
    fixed = name == "fixed"
    out, cache = directory / f"out-{name}", directory / "cache"
    command = [sys.executable, "-m", "conformance.cli", "bisect", *(CASE.format(op=op) for op in ops)]
    command += ["--axis", "backend", "--repository", str(directory / "history"), "--cache", str(cache)]
    command += ["--matrix", "matrices/refnpu.toml", "--torch", "2.13", "--out", str(out), "--tries", "30"]
    oldest, newest = commits[0], commits[-1]
    good, bad = (newest, oldest) if fixed else (oldest, newest)
    command += ["--good", good, "--bad", bad, *["--fixed"][: int(fixed)]] if ends else []
    (out / "state.json").unlink(missing_ok=True)
    built, spent, started = _built(cache), _cpu(), time.monotonic()
    with (directory / f"{name}.log").open("w") as log:
        subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False)
    seconds, cpu = time.monotonic() - started, _cpu() - spent
    facts = json.loads((out / "result.json").read_text())
    said = [_verdict(case, commits[CULPRITS[op]]) for op, case in zip(ops, facts["cases"])]
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
    """Return the CPU seconds of all ended children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(directory: Path, names: list[str]) -> None:
    """Print a line for each search."""
    commits = make(directory / "history")
    print(f"{'':<9} {'named':<30} {'points':>6} {'skipped':>7} {'builds':>6} {'runs':>8} {'s':>7} {'cpu s':>7}")
    for name in names or SEARCHES:
        print(search(directory, commits, name), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
