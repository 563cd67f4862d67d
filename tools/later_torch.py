"""Record what CPU gives under this torch for the cases that fail on an earlier one.

Give it the results of lanes on earlier versions, of a backend that does as this torch's CPU does. It adds the outcomes
to the corpus; run the lanes again, and read what is excused: what still fails differs from this CPU as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import torch

from conformance import backends
from conformance.corpus import later
from conformance.corpus.later import Later
from conformance.corpus.reader import DATA, LATER
from conformance.inventory import call_of
from conformance.judging import oracle
from conformance.judging.twins import CPU, Twins
from conformance.plan.case import Case
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.records import Observation
from conformance.results.store import StoreError, journal
from conformance.torch_versions import later_kernel
from conformance.vocabulary import DEFAULT_SEED, Check

#: The checks that fail if this torch has repaired a kernel of CPU.
_CHECKS = {Check.VALUE, Check.ERROR_PARITY}
#: The largest size of a case's results. For larger results, ``torch_versions.later_kernel`` needs a function.
MOST_BYTES = 16 << 10


def main(arguments: list[str] | None = None) -> int:
    """Add the outcomes of the runs that the command line names to the corpus."""
    parser = argparse.ArgumentParser(prog="python -m tools.later_torch", description=__doc__)
    parser.add_argument("run", nargs="+", type=Path, help="the directory of a run's results, or its observations.jsonl")
    runs = [_read(path, parser.error) for path in parser.parse_args(arguments).run]
    file = DATA / LATER
    outcomes = later.read(file) if file.exists() else {}
    before = len(outcomes)
    plan = Plan(backends.find("torch:cpu"), Selection(), DEFAULT_SEED)
    for run in runs:
        cases = [case for case in _cases(plan, run.observations) if case.id not in outcomes]
        found = {case.id: (_outcome(plan, case), later.version()) for case in cases}
        large = [id_ for id_, (outcome, _) in found.items() if _bytes(outcome) > MOST_BYTES]
        outcomes |= {id_: entry for id_, entry in found.items() if id_ not in large}
        sys.stdout.writelines(f"too large to be kept: {id_}\n" for id_ in large)
    later.write(file, outcomes)
    print(f"{file}: {len(outcomes)} cases, {len(outcomes) - before} of them new, under torch {torch.__version__}")
    return 0


def _read(path: Path, refuse: Callable[[str], NoReturn]) -> journal.Run:
    """Return a run. Calls ``refuse`` if it cannot be read, or is not on an earlier version of torch."""
    try:
        run = journal.read(path)
    except StoreError as e:
        refuse(str(e))
    if not later.is_earlier(run.manifest.torch):
        refuse(f"{path}: a run on torch {run.manifest.torch}, which is not earlier than this one, {torch.__version__}")
    return run


def _cases(plan: Plan, observations: Iterable[Observation]) -> Iterator[Case]:
    """Yield the failing cases that a repaired kernel may explain, if this torch has them."""
    for observation in observations:
        ids = {failure.case for failure in observation.failures if failure.check in _CHECKS}
        if ids and not observation.cell.is_scenario and later_kernel(observation.cell.overload) is None:
            yield from (case for case in plan.all_cases(observation.cell) if case.id in ids)


def _outcome(plan: Plan, case: Case) -> Later:
    """Return the outcome of CPU's call with the arguments of a case."""
    outcome = oracle.call(call_of(case.cell.overload), Twins(plan.corpus.value).side(case, CPU))
    if outcome.error is not None:
        return Later(type(outcome.error).__name__)
    leaves = [leaf if isinstance(leaf, torch.Tensor) else None for _, leaf in outcome.leaves]
    written = [a.tensor for a in outcome.side.arguments if a.slot.written]
    return Later("", tuple(None if t is None else t.detach().clone() for t in [*leaves, *written]))


def _bytes(outcome: Later) -> int:
    return sum(t.nbytes for t in outcome.results if t is not None)


if __name__ == "__main__":
    sys.exit(main())
