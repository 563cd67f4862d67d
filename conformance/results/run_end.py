"""The end of a run: the printed text and the exit code."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.records import GateFailure, Observation
from conformance.results import expectations, summary
from conformance.results.expectations import KnownFailure, Verdict
from conformance.results.store import Manifest
from conformance.support import exit_codes
from conformance.vocabulary import Status


def not_reached(gate: GateFailure) -> str:
    """Return the reason that is stored with each cell after the gate failed. It has no details, to save space."""
    return f"bring-up gate: {gate.headline}"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The printed text and the exit code of a run."""

    text: str
    code: exit_codes.Exit


def of_run(
    manifest: Manifest, result: dict[str, Any], observations: Collection[Observation], known: Sequence[KnownFailure],
    directory: str, *, gate: GateFailure | None = None, unwritten: str = "", history: Sequence[str] = (),
) -> RunEnd:  # fmt: skip
    """Return the end of a run with the summary ``result``.

    ``directory``: the directory of the run's files. ``unwritten``: the error if results could not be written.
    ``history``: lines to print before the summary.
    """
    verdicts = [(o, expectations.judge(o, known, manifest.lane).verdict) for o in observations]
    notes = _broken(manifest, known, verdicts)
    told = [o for o, v in verdicts if v is not Verdict.EXPECTED_FAILURE]
    limits = result.get("limits", ())  # each is a failure of the backend
    text = summary.text(result, told, directory, manifest.backend_for_commands)
    code = exit_codes.of_run(
        bring_up=not gate,
        balanced=not summary.imbalance(result),
        written=not unwritten,
        collected=result["collected"],
        failed=len(limits) + sum(v is Verdict.UNEXPECTED_FAILURE and o.status is not Status.ERROR for o, v in verdicts),
        errors=sum(o.status in (Status.ERROR, Status.NOT_REACHED) for o in observations),
        broken_expectations=len(notes),
    )
    gates = [f"bring-up gate: {gate}", "no cell was judged"] if gate else []
    return RunEnd("\n".join([*notes, *gates, *history, text]), code)


def _broken(
    manifest: Manifest, known: Sequence[KnownFailure], verdicts: Sequence[tuple[Observation, Verdict]]
) -> list[str]:
    """Return the errors in the known failures. Only a complete run can show that a known failure matches no cell."""
    notes = [f"unexpected pass: {o.cell}" for o, v in verdicts if v is Verdict.UNEXPECTED_PASS]
    if manifest.complete and not manifest.shard:
        cells = [(o.cell, o.route) for o, _ in verdicts]
        notes += [f"matches no cell: {r}" for r in expectations.stale(known, cells, manifest.lane)]
    return notes
