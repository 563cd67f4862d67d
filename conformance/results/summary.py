"""The summary of a run, made from its observations and other facts, and the text that is printed at its end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.records import LeftOut, Observation
from conformance.results import causes, causes_text, unimplemented
from conformance.results.shards import Split
from conformance.results.store import Manifest
from conformance.support.wording import counted, some
from conformance.vocabulary import Status

_TOP = 10
_CALLERS = 4


@dataclass(frozen=True, slots=True)
class Target:
    """An overload that a full run has to compare, its route, and the reason if it is known to be out of reach."""

    overload: str
    route: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of a run that its observations do not hold."""

    lane: str
    collected: int
    wall_s: float
    cpu_s: float  # of all processes of the run
    collect_s: float
    corpus: str
    torch: str
    compiler: str
    backend_commit: str
    # Overloads of the corpus that this torch lacks or has with another schema: (schema recorded, schema here or "").
    schemas: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @staticmethod
    def of(
        manifest: Manifest, collected: int, wall_s: float, cpu_s: float, collect_s: float,
        schemas: Mapping[str, tuple[str, str]],
    ) -> RunFacts:  # fmt: skip
        """Return the facts of a run, from its manifest and from the facts known at its end. Times are in seconds."""
        return RunFacts(
            lane=manifest.lane, collected=collected, wall_s=wall_s, cpu_s=cpu_s, collect_s=collect_s,
            corpus=manifest.corpus, torch=manifest.torch, compiler=manifest.compiler,
            backend_commit=manifest.backend_commit, schemas=schemas,
        )  # fmt: skip


def summarize(facts: RunFacts, observations: Sequence[Observation], targets: Iterable[Target]) -> dict[str, Any]:
    """Return the content of ``summary.json``. ``raw_call_share``: the share of the cells' wall time in op calls."""
    wall_ns = sum(o.wall_ns for o in observations)
    return {
        "lane": facts.lane,
        "collected": facts.collected,
        "by_status": by_status(observations),
        "coverage": coverage(observations, targets),
        "lacking": lacking(observations),
        "cells": len(observations),
        "cases": sum(o.cases for o in observations),
        "wall_s": round(facts.wall_s, 3),
        "cpu_s": round(facts.cpu_s, 3),
        "raw_call_share": round(sum(o.raw_ns for o in observations) / wall_ns, 4) if wall_ns else 0.0,
        "collect_s": round(facts.collect_s, 3),
        "corpus": facts.corpus,
        "torch": facts.torch,
        "compiler": facts.compiler,
        "backend_commit": facts.backend_commit,
        "schemas": {overload: list(pair) for overload, pair in facts.schemas.items()},
    }


def of_shard(split: Split, targets: Iterable[Target]) -> dict[str, Any]:
    """Return the content that a shard's summary has in addition. The merge counts coverage over all shards with it."""
    return {**split.to_json(), "targets": [[t.overload, t.route, t.reason] for t in targets]}


def by_status(observations: Iterable[Observation]) -> dict[str, int]:
    """Return the number of cells of each status, including zeros, in the vocabulary's order."""
    counts = Counter(o.status for o in observations)
    return {status.value: counts[status] for status in Status}


def coverage(observations: Iterable[Observation], targets: Iterable[Target]) -> dict[str, Any]:
    """Return the number of targets that were compared with CPU in at least one case, and why the others were not."""
    compared: set[str] = set()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for o in observations:
        if o.compared:
            compared.add(o.cell.overload)
        else:
            reasons[o.cell.overload][o.reason or f"its cells ended as {o.status.value}"] += 1
    by_route: dict[str, dict[str, int]] = defaultdict(lambda: {"compared": 0, "total": 0})
    not_reached = []
    for target in sorted(targets, key=lambda t: t.overload):
        by_route[target.route]["total"] += 1
        if target.overload in compared:
            by_route[target.route]["compared"] += 1
        else:
            reason = _reason(target, reasons[target.overload])
            not_reached.append({"overload": target.overload, "reason": reason})
    return {
        "compared": sum(r["compared"] for r in by_route.values()),
        "total": sum(r["total"] for r in by_route.values()),
        "by_route": {route: by_route[route] for route in sorted(by_route)},
        "not_reached": not_reached,
    }


def lacking(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Return the overloads without a kernel that native kernels call, beginning with the one in most cases.

    Each has the number of cases that were not compared because of it, and the overloads whose kernels call it.
    """
    cases: Counter[str] = Counter()
    callers: dict[str, set[str]] = defaultdict(set)
    for o in observations:
        for one in o.lacking:
            cases[one.overload] += one.cases
            callers[one.overload].add(o.cell.overload)
    found = sorted(cases.items(), key=lambda item: (-item[1], item[0]))
    return [{"overload": name, "cases": n, "callers": sorted(callers[name])} for name, n in found]


def imbalance(summary: dict[str, Any]) -> str:
    """Return an error with the number of lost or doubly counted cells, "" if ``collected`` is the sum over statuses."""
    collected, ended = summary["collected"], sum(summary["by_status"].values())
    if collected == ended:
        return ""
    what = f"{collected - ended} lost" if collected > ended else f"{ended - collected} counted twice"
    return f"accounting does not balance: {collected} cells collected, {ended} in the statuses: {what}"


def text(summary: dict[str, Any], observations: Iterable[Observation], results: str, backend: str) -> str:
    """Return the text that a run of the adapter ``backend`` prints at its end. ``results``: its files' directory."""
    ran = list(observations)
    parts = [
        _limits(summary), causes_text.text(causes.of_run(ran), backend), _failures(ran), _unrepeated(ran),
        unimplemented.text(unimplemented.of_summary(summary)), _lacking(summary),
        _coverage(summary["coverage"], results),
        _schemas(summary), _figures(summary), _accounting(summary),
    ]  # fmt: skip
    return "\n".join([*(part for part in parts if part), f"results: {results}/"])


def _limits(summary: dict[str, Any]) -> str:
    """Return a line for each broken primitive that the run did without, with the number of cells that need it."""
    found = summary.get("limits", ())
    cells = [counted(limit["cells"], "cell") for limit in found]
    return "\n".join(f"BROKEN: {limit['headline']}; {n} not reached" for limit, n in zip(found, cells, strict=True))


def _lacking(summary: dict[str, Any]) -> str:
    """Return lines about the overloads that native kernels call and the backend lacks, and the cases not compared."""
    found = summary.get("lacking", ())
    if not found:
        return ""
    total = sum(one["cases"] for one in found)
    lines = [f"not compared: {total} cases in which a native kernel calls an overload that the backend lacks:"]
    lines += [f"  {one['overload']}: {one['cases']} cases of {some(one['callers'], _CALLERS)}" for one in found[:_TOP]]
    if len(found) > _TOP:
        lines.append(f"  ... and {counted(len(found) - _TOP, 'overload')} more, see `lacking` in the summary")
    return "\n".join(lines)


def _reason(target: Target, seen: Counter[str]) -> str:
    if target.reason:
        return target.reason
    return min(seen, key=lambda r: (-seen[r], r)) if seen else "no cell of it was in this run"


def _failures(observations: Iterable[Observation]) -> str:
    """Return a line for each overload with most failing cells: their number, checks or signals, and first case."""
    groups: dict[str, list[Observation]] = defaultdict(list)
    for o in observations:
        if o.status.is_failure:
            groups[o.cell.overload].append(o)
    if not groups:
        return ""
    worst = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    width = max(len(overload) for overload, _ in worst[:_TOP])
    cells = counted(sum(map(len, groups.values())), "cell")
    lines = [f"failing cells by overload ({cells}, {counted(len(groups), 'overload')}):"]
    lines += [f"  {overload:<{width}}  {len(cells):>6}  {_ways(cells)}" for overload, cells in worst[:_TOP]]
    if len(worst) > _TOP:
        lines.append(f"  ... and {counted(len(worst) - _TOP, 'overload')} more")
    return "\n".join(lines)


def _unrepeated(observations: Iterable[Observation]) -> str:
    """Return the number of failing cells that were not repeated enough because time ran out, as text; "" for none."""
    failures = (f for o in observations for f in o.failures if f.repetition)
    left = sum(f.repetition is not None and f.repetition.left_out in (LeftOut.TIME, LeftOut.ORDER) for f in failures)
    if not left:
        return ""
    return (
        f"{left} failing cells were not repeated alone, or not often enough: the time budget for that was spent; raise "
        "it with --failure-budget"
    )


def _ways(cells: Sequence[Observation]) -> str:
    ways: Counter[str] = Counter()
    for o in cells:
        ways.update({f.check for f in o.failures if f.check} or {o.signal or o.status.value})
    listed = ", ".join(f"{way} {n}" for way, n in sorted(ways.items(), key=lambda item: (-item[1], item[0])))
    first = next((f.case for o in cells for f in o.failures), cells[0].cell.name)
    return f"{listed}; first: {first}"


def _coverage(figures: dict[str, Any], results: str) -> str:
    share = 100 * figures["compared"] / figures["total"] if figures["total"] else 0.0
    routes = ", ".join(f"{route} {r['compared']}/{r['total']}" for route, r in figures["by_route"].items())
    head = f"coverage: {figures['compared']} of {figures['total']} overloads compared ({share:.1f} %)"
    line = f"{head}: {routes}" if routes else head
    if not figures["not_reached"]:
        return line
    missed = counted(len(figures["not_reached"]), "overload")
    return f"{line}\nnot reached: {missed}, reasons in {results}/summary.json"


def _schemas(summary: dict[str, Any]) -> str:
    """Return a line about the overloads of the corpus that this torch lacks or has with another schema."""
    pairs = summary.get("schemas", {}).values()
    absent = sum(not here for _, here in pairs)
    if not pairs:
        return ""
    return (
        f"torch {summary['torch']}: {absent} overloads of the corpus are not in it, {len(pairs) - absent} have another "
        "schema; see `schemas` in the summary"
    )


def _figures(summary: dict[str, Any]) -> str:
    split = summary.get("shard")
    shard = f", shard {split['shard']} of {split['of']} cells" if split else ""
    return (
        f"lane {summary['lane']}{shard}: {summary['cells']} cells, {summary['cases']} cases\n"
        f"time: {summary['wall_s']:.1f} s, {summary['cpu_s']:.1f} s of CPU, {summary['collect_s']:.1f} s to collect; "
        f"{100 * summary['raw_call_share']:.0f} % of the time in cells went to op calls"
    )


def _accounting(summary: dict[str, Any]) -> str:
    counts = summary["by_status"]
    line = f"accounting: {summary['collected']} collected = " + " + ".join(f"{n} {s}" for s, n in counts.items())
    lost = imbalance(summary)
    return f"{line}\nERROR: {lost}" if lost else line
