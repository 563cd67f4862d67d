"""A run as Markdown for the page of a workflow's job: its counts, the causes of its failures, the failing overloads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.explain import describe
from conformance.records import CaseFailure, Observation
from conformance.results import causes, causes_text, summary
from conformance.results.causes import Cause
from conformance.results.expectations import KnownFailure, Verdict, judge
from conformance.results.store import Manifest
from conformance.support import markup
from conformance.support.wording import some
from conformance.vocabulary import Status

SHOWN = 20  # causes, and overloads; a job's page may have 1 MiB
_LONGEST = 300  # characters of a message's line


def markdown(
    manifest: Manifest, result: dict[str, Any], observations: Iterable[Observation], known: Sequence[KnownFailure]
) -> str:
    """Return the text of one run. ``result``: its summary."""
    verdicts = [(o, judge(o, known, manifest.lane).verdict) for o in observations]
    wrong = [o for o, v in verdicts if v.is_failure or o.status is Status.NOT_REACHED]
    expected = sum(v is Verdict.EXPECTED_FAILURE for _, v in verdicts)
    shard = f", shard {manifest.shard}" if manifest.shard else ""
    lost = summary.imbalance(result)
    return "\n".join([
        f"### {markup.plain(manifest.series)}{shard}: {_verdict(len(wrong), lost)}",
        "",
        *([f"**{markup.plain(lost)}**", ""] if lost else []),
        "| " + " | ".join(["cells", *result["by_status"], "expected to fail"]) + " |",
        "| " + " | ".join("---:" for _ in range(len(result["by_status"]) + 2)) + " |",
        "| " + " | ".join(map(str, [result["collected"], *result["by_status"].values(), expected])) + " |",
        "",
        _facts(manifest, result),
        "",
        *_causes(
            causes.of_run(o for o, v in verdicts if v is not Verdict.EXPECTED_FAILURE), manifest.backend_for_commands
        ),
        *_failing(wrong),
    ])  # fmt: skip


def _verdict(wrong: int, lost: str) -> str:
    if lost:
        return "the account does not balance"
    return f"{wrong} cells are not as expected" if wrong else "as expected"


def _facts(manifest: Manifest, result: dict[str, Any]) -> str:
    covered = result["coverage"]
    routes = ", ".join(f"{name} {r['compared']}/{r['total']}" for name, r in covered["by_route"].items())
    commit = f", backend {markup.code(manifest.backend_commit)}" if manifest.backend_commit else ""
    return (
        f"torch {markup.plain(manifest.torch)}{commit}; {result['cases']} cases in {result['wall_s']:.0f} s; "
        f"{covered['compared']} of {covered['total']} overloads compared ({markup.plain(routes) or 'no route'})"
    )


def _causes(found: Sequence[Cause], backend: str) -> list[str]:
    """Return a table of the causes, and the commands for the example of the first cause."""
    if not found:
        return []
    lines = ["| cause | cells | overloads | what tells them | example |", "| --- | ---: | --- | --- | --- |"]
    for cause in found[:SHOWN]:
        told = "; ".join(map(causes_text.contrast, cause.contrasts))
        overloads = f"{len(cause.overloads)}: {some(cause.overloads)}"
        name, cells = markup.code(causes_text.name(cause)), str(len(cause.cells))
        columns = [name, cells, markup.plain(overloads), markup.plain(told)]
        lines.append(f"| {' | '.join([*columns, markup.code(cause.example)])} |")
    more = len(found) - SHOWN
    lines += ["", *([f"... and {more} causes more", ""] if more > 0 else [])]
    for what, command in causes_text.commands(found[0], backend).items():
        lines += [f"{what.capitalize()} the first:", "", *markup.block(command, "sh"), ""]
    return lines


def _failing(wrong: Sequence[Observation]) -> list[str]:
    groups: dict[str, list[Observation]] = defaultdict(list)
    for o in wrong:
        groups[o.cell.overload].append(o)
    if not groups:
        return []
    worst = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = ["| overload | cells | how | first |", "| --- | ---: | --- | --- |"]
    for overload, cells in worst[:SHOWN]:
        first = next((f"{f.case}: {_first(f)}" for o in cells for f in o.failures), f"{cells[0].cell.name}")
        lines.append(
            f"| {markup.code(overload)} | {len(cells)} | {markup.plain(_ways(cells))} | {markup.code(first)} |"
        )
    more = len(worst) - SHOWN
    return [*lines, "", *([f"... and {more} overloads more", ""] if more > 0 else [])]


def _first(failure: CaseFailure) -> str:
    found = describe.first_line(failure)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}…"


def _ways(cells: Sequence[Observation]) -> str:
    ways: Counter[str] = Counter()
    for o in cells:
        ways.update({f.check for f in o.failures if f.check} or {o.signal or o.status.value})
    return ", ".join(f"{way} {n}" for way, n in sorted(ways.items(), key=lambda item: (-item[1], item[0])))
