"""The account of one run: every cell collected and what became of it, on disk as it happens, summed up at the end."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from conformance import exit_codes, expectations, store, summary
from conformance.expectations import Rule, Verdict
from conformance.store import Manifest
from conformance.summary import RunFacts, Target
from conformance.vocabulary import CellId, Observation, Status


@dataclass(frozen=True, slots=True)
class Closing:
    """What a run comes to."""

    text: str
    code: exit_codes.Exit


class Ledger:
    """Kept by the process that sees every report. Observations are stored the moment they are entered."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        cells: Collection[CellId],
        targets: Iterable[Target],
        rules: Iterable[Rule],
    ) -> None:
        self._cells = {str(cell): cell for cell in cells}
        self._manifest = manifest
        self._targets = list(targets)
        self._rules = tuple(rules)
        self._writer = store.Writer(directory, manifest)
        self._seen: dict[str, Observation] = {}
        self._twice = 0
        self._started = time.perf_counter()
        self.gate = ""  # what the bring-up gate found broken

    def enter(self, observation: Observation) -> None:
        """Record what was observed of a cell. A cell entered twice unbalances the account, on purpose."""
        key = str(observation.cell)
        self._twice += key in self._seen or key not in self._cells
        self._seen[key] = observation
        self._writer.append(observation)

    def verdict(self, observation: Observation) -> expectations.Judgement:
        """The observation against the rules of the expected failures."""
        return expectations.judge(observation, self._rules, self._manifest.lane)

    def close(self, collect_s: float, cpu_s: float) -> Closing:
        """Account for every cell, write the summary, and say what to print and how to exit."""
        reason = f"bring-up gate: {self.gate}" if self.gate else "the run ended before it"
        for key, cell in self._cells.items():
            if key not in self._seen:
                self.enter(Observation(cell, "", Status.NOT_REACHED, 0, reason=reason))
        observations = list(self._seen.values())
        facts = RunFacts(
            lane=self._manifest.lane,
            collected=len(self._cells) - self._twice,
            wall_s=time.perf_counter() - self._started,
            cpu_s=cpu_s,
            collect_s=collect_s,
            corpus=self._manifest.corpus,
            torch=self._manifest.torch,
            compiler=self._manifest.compiler,
            backend_commit=self._manifest.backend_commit,
        )
        result = summary.summarize(facts, observations, self._targets)
        self._writer.finish(result)
        verdicts = [(o, self.verdict(o).verdict) for o in observations]
        notes = self._broken_expectations(verdicts)
        text = summary.text(
            result, [o for o, v in verdicts if v is not Verdict.EXPECTED_FAILURE], str(self._writer.directory)
        )
        code = exit_codes.of_run(
            bring_up=not self.gate,
            balanced=not summary.imbalance(result),
            collected=len(self._cells),
            failed=sum(v is Verdict.UNEXPECTED_FAILURE and o.status is not Status.ERROR for o, v in verdicts),
            errors=sum(o.status is Status.ERROR for o in observations),
            broken_expectations=len(notes),
        )
        gate = [f"bring-up gate: {self.gate}", "nothing else was judged"] if self.gate else []
        return Closing("\n".join([*notes, *gate, text]), code)

    def _broken_expectations(self, verdicts: list[tuple[Observation, Verdict]]) -> list[str]:
        notes = [f"unexpected pass: {o.cell}" for o, v in verdicts if v is Verdict.UNEXPECTED_PASS]
        if self._manifest.complete:
            cells = [(o.cell, o.route) for o, _ in verdicts]
            notes += [f"matches no cell: {r}" for r in expectations.stale(self._rules, cells, self._manifest.lane)]
        return notes
