"""The CPU time of the steps before the first cell of a run: ``startup.py [ROUNDS]``.

Each round is a process of its own that takes the steps in turn: import torch, list the overloads of the dispatcher,
open the corpus without and with its generated samples, decode both, and look up the facts of each overload. The result
is the median CPU time of each step in milliseconds, of 5 rounds or ROUNDS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

ROW = "{:<30} {:>8}"

T = TypeVar("T")


def steps() -> dict[str, float]:
    """Take each step in this process. Return its CPU time in milliseconds."""
    spent: dict[str, float] = {}
    clocked(spent, "import torch", _import_torch)
    from conformance.corpus.reader import Corpus, load
    from conformance.inventory import inventory
    from conformance.ops import facts

    def decode(corpus: Corpus) -> int:
        return sum(len(corpus.samples(overload)) for overload in corpus.overloads)

    overloads = clocked(spent, "list the overloads", lambda: inventory("CPU"))
    recorded = clocked(spent, "open the recorded samples", lambda: load(generated=False))
    clocked(spent, "decode the recorded samples", lambda: decode(recorded))
    every = clocked(spent, "open all samples", load)
    clocked(spent, "decode all samples", lambda: decode(every))
    clocked(spent, "look up the facts", lambda: [facts(one.name) for one in overloads])
    return spent


def clocked(spent: dict[str, float], step: str, take: Callable[[], T]) -> T:
    """Return the result of a step, and enter its CPU time."""
    began = time.process_time()
    result = take()
    spent[step] = 1000 * (time.process_time() - began)
    return result


def _import_torch() -> None:
    import torch  # noqa: F401


def main(rounds: int) -> None:
    """Print a line for each step."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.startup", "--steps"]
    taken = [json.loads(subprocess.check_output(command, text=True)) for _ in range(rounds)]
    print(ROW.format("step", "CPU ms"))
    for step in taken[0]:
        print(ROW.format(step, f"{median(one[step] for one in taken):.0f}"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--steps"]:
        print(json.dumps(steps()))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
