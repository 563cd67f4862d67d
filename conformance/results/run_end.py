"""The end of a run: what is printed, and the exit code, of what was observed and what was expected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.results import expectations, summary
from conformance.results.expectations import Rule, Verdict
from conformance.results.store import Manifest
from conformance.support import exit_codes
from conformance.vocabulary import Observation, Status


def not_reached(gate: str) -> str:
    """Why a cell was not judged behind a gate: without a child's last words, for it is kept once a cell."""
    first, *_ = gate.partition("\n")
    return f"bring-up gate: {first}"


@dataclass(frozen=True, slots=True)
class Closing:
    """What a run comes to."""

    text: str
    code: exit_codes.Exit


def of_run(
    manifest: Manifest, result: dict[str, Any], observations: Collection[Observation], rules: Sequence[Rule],
    directory: str, *, gate: str = "", unwritten: str = "", history: Sequence[str] = (),
) -> Closing:  # fmt: skip
    """The closing of a run with this summary.

    ``directory``: where its files lie. ``gate``: what the bring-up gate found broken. ``unwritten``: why results could
    not be written. ``history``: lines to print before the rest.
    """
    verdicts = [(o, expectations.judge(o, rules, manifest.lane).verdict) for o in observations]
    notes = _broken(manifest, rules, verdicts)
    told = [o for o, v in verdicts if v is not Verdict.EXPECTED_FAILURE]
    text = summary.text(result, told, directory, manifest.backend)
    code = exit_codes.of_run(
        bring_up=not gate,
        balanced=not summary.imbalance(result),
        written=not unwritten,
        collected=result["collected"],
        failed=sum(v is Verdict.UNEXPECTED_FAILURE and o.status is not Status.ERROR for o, v in verdicts),
        errors=sum(o.status in (Status.ERROR, Status.NOT_REACHED) for o in observations),
        broken_expectations=len(notes),
    )
    gates = [f"bring-up gate: {gate}", "nothing else was judged"] if gate else []
    return Closing("\n".join([*notes, *gates, *history, text]), code)


def _broken(manifest: Manifest, rules: Sequence[Rule], verdicts: Sequence[tuple[Observation, Verdict]]) -> list[str]:
    """What is wrong with the rules. Only a run of every cell can say that one matches nothing."""
    notes = [f"unexpected pass: {o.cell}" for o, v in verdicts if v is Verdict.UNEXPECTED_PASS]
    if manifest.complete and not manifest.shard:
        cells = [(o.cell, o.route) for o, _ in verdicts]
        notes += [f"matches no cell: {r}" for r in expectations.stale(rules, cells, manifest.lane)]
    return notes
