"""A run as annotations of a GitHub workflow: one for each cause of its failures.

The format: workflow commands, docs.github.com/actions/reference/workflows-and-actions/workflow-commands. GitHub shows
ten errors and ten warnings of a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from conformance.explain import describe
from conformance.records import Observation
from conformance.results import causes, causes_text
from conformance.results.causes import Cause
from conformance.results.expectations import KnownFailure, Verdict, judge
from conformance.results.store import Manifest
from conformance.support.wording import counted, some
from conformance.vocabulary import CellId, Status

SHOWN = 10
LONGEST = 4000  # characters of a message; GitHub cuts an annotation at 64 KB


def annotated(manifest: Manifest, observations: Iterable[Observation], known: Sequence[KnownFailure]) -> str:
    """Return the lines of one run; "" if each cell is as expected."""
    verdicts = [(o, judge(o, known, manifest.lane).verdict) for o in observations]
    wrong = {o.cell: o for o, v in verdicts if v is Verdict.UNEXPECTED_FAILURE}
    found = causes.of_run(o for o, v in verdicts if v is not Verdict.EXPECTED_FAILURE)
    lines = [_cause(cause, wrong, manifest) for cause in found[:SHOWN]]
    return "".join(f"{line}\n" for line in [*lines, *_others(verdicts, len(found) - SHOWN)])


def _cause(cause: Cause, wrong: dict[CellId, Observation], manifest: Manifest) -> str:
    seen = wrong.get(cause.example_cell)
    told = [
        f"{some(cause.overloads)} on torch {manifest.torch}",
        *([f"{cause.example}: {describe.excerpt(seen)}"] if seen else []),
        *map(causes_text.contrast, cause.contrasts),
        *(f"{what}: {line}" for what, line in causes_text.commands(cause, manifest.backend_for_commands).items()),
    ]
    return command("error", f"{causes_text.name(cause)}: {causes_text.explained(cause)}", "\n".join(told))


def _others(verdicts: Sequence[tuple[Observation, Verdict]], more: int) -> Iterator[str]:
    if more > 0:
        yield command("warning", "op-conformance", f"{counted(more, 'more cause')}: see the job's summary")
    if passing := [o.cell.name for o, v in verdicts if v.is_failure and not o.status.is_failure]:
        count = counted(len(passing), "cell")
        yield command("error", "op-conformance", f"{count} expected to fail did not: {some(passing)}")
    if unreached := sum(o.status is Status.NOT_REACHED for o, _ in verdicts):
        yield command("error", "op-conformance", f"{counted(unreached, 'cell')} not reached")


def command(kind: str, title: str, message: str) -> str:
    """Return one workflow command. The text of a result cannot end the command or its title."""
    cut = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
    return f"::{kind} title={_data(title).replace(':', '%3A').replace(',', '%2C')}::{_data(cut)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
