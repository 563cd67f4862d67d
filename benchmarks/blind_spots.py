"""Wrong results that the suite does not find: ``blind_spots.py [DTYPE]...``, in the reference NPU's smoke tier.

After each call on the device, before the comparison, one bit of the last element of each result and of each written
argument is flipped. The benchmark counts the cases that fail, and lists the overloads of the others by reason. A single
wrong draw does not show in a distribution, and uninitialized memory is not compared.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.judging import oracle
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.oracle import CallOutcome
from conformance.judging.tolerances import criteria_of
from conformance.ops.family import Equivalence
from conformance.plan.case import Case
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.torch_versions import has_no_memory, storage_id
from conformance.vocabulary import DEFAULT_SEED, Status

SEEN = "noticed"


def turn_over(tensor: torch.Tensor) -> None:
    """Change the last element: a high bit of an exponent, else the lowest bit."""
    size, last = tensor.element_size(), _last(tensor)
    there = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    held = there.cpu()
    if tensor.is_floating_point() or tensor.is_complex():
        held[(last + 1) * size - 1] ^= 0x40
    else:
        held[last * size] ^= 1
    there.copy_(held)


def _last(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride())))


def changed(outcome: CallOutcome) -> int:
    """Return the number of changed elements. An element that several views share counts once."""
    found: dict[Any, torch.Tensor] = {}
    for tensor in _written(outcome):
        if tensor.layout == torch.strided and tensor.numel() and not has_no_memory(tensor):
            found.setdefault((storage_id(tensor), _last(tensor)), tensor)
    for tensor in found.values():
        turn_over(tensor)
    return len(found)


def _written(outcome: CallOutcome) -> Iterator[torch.Tensor]:
    yield from (leaf for _, leaf in outcome.leaves if isinstance(leaf, torch.Tensor) and leaf.device.type != "cpu")
    yield from (a.tensor for a in outcome.side.arguments if a.slot.written)


class Tally:
    """A wrapper of the judge and the calls on the device, also in forked children, that counts the judge's answers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changed = 0

    def said(self) -> dict[str, Counter[str]]:
        """Return the number of cases by reason and overload."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for line in self._file.read_text().splitlines():
            overload, _, reason = line.partition(" ")
            found[reason][overload] += 1
        return found

    def call(self, real: Callable[..., CallOutcome]) -> Callable[..., CallOutcome]:
        def call(
            op: Any, side: Any, seed: int | None = None, synchronize: Callable[[], None] | None = None
        ) -> CallOutcome:
            outcome = real(op, side, seed, synchronize)
            if synchronize is not None and outcome.error is None:  # a call on the device, not on CPU
                self._changed += changed(outcome)
            return outcome

        return call

    def judge(self, real: Callable[..., CaseResult]) -> Callable[..., CaseResult]:
        def judge(judge: Judge, case: Case, on_phase: Callable[[str], None] | None = None) -> CaseResult:
            self._changed = 0
            verdict = real(judge, case, on_phase)
            if self._changed:
                with self._file.open("a") as kept:
                    kept.write(f"{case.cell.overload} {SEEN if verdict.mismatches else _why(case, verdict)}\n")
            return verdict

        return judge


def _why(case: Case, verdict: CaseResult) -> str:
    criteria = criteria_of(case.cell.overload)
    if verdict.skipped:
        return verdict.skipped
    if criteria.random:
        return "drawn: judged by its distribution"
    kind = criteria.equivalence(0)
    return f"compared as {kind.value}" if kind is not Equivalence.EQUAL else "NO REASON"


def main(dtypes: list[str]) -> None:
    """Print a line for each reason."""
    warnings.simplefilter("ignore")
    plan = Plan(backends.find("refnpu"), Selection(TIERS["smoke"], frozenset(dtypes)), DEFAULT_SEED)
    work = CellRunner(plan)
    work.prepare()
    with tempfile.TemporaryDirectory() as scratch:
        tally = Tally(Path(scratch) / "said")
        oracle.call, Judge.judge = tally.call(oracle.call), tally.judge(Judge.judge)  # type: ignore[method-assign]
        runner = Runner(work, 60)
        died = sum(runner.observe(c).status is Status.CRASH for name in plan.overloads() for c in plan.cells(name))
        runner.close()
        said = tally.said()
    print(f"{died:>6} cells in which a process died")
    for reason, overloads in sorted(said.items(), key=lambda found: -found[1].total()):
        names = "" if reason == SEEN else "  " + ", ".join(name for name, _ in overloads.most_common(8))
        print(f"{overloads.total():>6} cases of {len(overloads):>4} overloads: {reason}{names}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["float32"])
