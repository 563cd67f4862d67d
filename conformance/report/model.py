"""The site's data, made from the gathered data: JSON-able, in the parts that the page loads. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conformance.report import causes, cells, failures, overview, perf
from conformance.report.cells import Table, Words
from conformance.report.gather import Found, LaneData
from conformance.results import summary, unimplemented
from conformance.results.diff import Change, Difference
from conformance.results.store import Closed, views
from conformance.results.store.manifest import began
from conformance.vocabulary import CellId, Check, Route, Status

# A letter for each status, so that statuses differ not only in color. A space means that the run lacks the cell.
LETTERS = {
    Status.PASS: "P", Status.FAIL: "F", Status.ERROR: "E", Status.CRASH: "C", Status.TIMEOUT: "T",
    Status.UNSUPPORTED: "U", Status.NOT_REACHED: "N",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """The site's data: ``main``, which is loaded first, and for each lane the cells and the pages of failing cells."""

    main: dict[str, Any]
    lanes: Sequence[LaneData]
    table: Table

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the content of each other part, lane by lane. Raises StoreError."""
        for n, lane in enumerate(self.lanes):
            yield f"lane-{n}", _lane(lane, self.table)
            for k, piece in enumerate(failures.pieces(lane, self.table)):
                yield f"pages-{n}-{k}", piece


def site(found: Found, made: datetime) -> Site:
    """Return the site of the gathered data. Raises StoreError."""
    table = cells.table(_cells(found.lanes))
    main = {
        "made": made.strftime("%Y-%m-%d %H:%M UTC"),
        "backends": sorted({lane.backend for lane in found.lanes}),
        "statuses": [
            {"name": s.value, "letter": LETTERS[s], "meaning": s.meaning, "failure": s.is_failure} for s in Status
        ],
        "routes": {r.value: r.meaning for r in Route},
        "checks": {c.value: c.meaning for c in Check},
        "changes": [str(c) for c in Change],
        "piece": failures.PIECE,
        "table": table.columns,
        "lanes": [lane_facts(lane) for lane in found.lanes],
        "newly": overview.newly(found.lanes, table),
        "worst": overview.worst(found.lanes),
        "left_out": list(found.left_out),
        "kill_rate": dict(found.kill_rate),
        "perf": perf.runs(found.perf),
        "searches": [dict(facts) for facts in found.searches],
    }
    return Site(main, found.lanes, table)


def _cells(lanes: Sequence[LaneData]) -> Iterator[Iterable[cells.Key]]:
    """Yield the cells of the lanes. Of finished runs whose manifests name the same set of cells, only one is read."""
    read: set[str] = set()
    for lane in lanes:
        known = lane.run.manifest.cells if lane.run.ended else ""
        if not known or known not in read:
            yield views.cells(lane.run)
        read.add(known)


def lane_facts(lane: LaneData) -> dict[str, Any]:
    """Return the facts about a lane for the overview: its run, and the results."""
    m, told = lane.run.manifest, lane.summary
    known = sum(failures.is_known(o, lane) for o in lane.failing)
    return {
        "name": m.series, "backend": m.backend, "torch": m.torch, "environment": m.environment, "build": m.build,
        "python": m.python, "compiler": m.compiler, "cpu": m.cpu, "commit": m.backend_commit, "corpus": m.corpus,
        "tier": m.tier, "seed": m.seed, "arguments": list(m.arguments), "complete": m.every_cell,
        "ended": lane.run.ended, "collected": m.collected, "by_status": dict(lane.run.by_status),
        "failing": lane.run.failing, "known": known, "account": account(lane), "run": lane.run.name,
        "began": _date(lane.run), "before": lane.before.name if lane.before else "", "later": lane.later,
        "coverage": told.get("coverage"), "schemas": told.get("schemas", {}),
        "unimplemented": [found.to_json() for found in unimplemented.of_summary(told)],
        **{name: told.get(name) for name in ("cases", "wall_s", "cpu_s", "collect_s", "raw_call_share")},
        "runs": [_run(run) for run in lane.runs],
        "changes": changes(lane.changes), "flaky": len(lane.flaky),
    }  # fmt: skip


def account(lane: LaneData) -> str:
    """Return "" if each collected cell has exactly one status and the run has a summary, else the error."""
    facts = {"collected": lane.run.manifest.collected, "by_status": lane.run.by_status}
    return summary.imbalance(facts) or ("" if lane.summary else "the run was cut off before it was summed up")


def changes(found: Sequence[Difference]) -> dict[str, int]:
    """Return the number of changes of each class, without zeros."""
    counts = Counter(d.change for d in found)
    return {str(change): counts[change] for change in Change if counts[change]}


def _lane(lane: LaneData, table: Table) -> dict[str, Any]:
    rows = lane.rows()
    return {
        **cells.lane(rows, table),
        "failing": failures.columns(lane, table),
        **causes.of_lane(lane, rows, table),
        "changed": _changed(lane, table),
        "flaky": [[table.of(cell), str(cell), why] for cell, why in lane.flaky.items()],
        "history": {n: _strip(lane, cell) for cell in lane.statuses if (n := table.of(cell)) is not None},
    }


def _changed(lane: LaneData, table: Table) -> dict[str, Any]:
    """Return columns with a row for each difference. A cell that no lane has any more is named by its id."""
    words, order = Words(), list(Change)
    rows = [d for d in lane.changes if d.change is not Change.NOT_COMPARED]
    return {
        "cell": [table.reference(d.pair.cell) for d in rows],
        "change": cells.text(order.index(d.change) for d in rows),
        "before": cells.text(words.number(d.pair.before.kind if d.pair.before else "absent") for d in rows),
        "after": cells.text(words.number(d.pair.after.kind if d.pair.after else "absent") for d in rows),
        "note": cells.text(words.number(d.note) for d in rows),
        "words": words.texts,
    }


def _strip(lane: LaneData, cell: CellId) -> str:
    """Return a letter for each run of the lane, the oldest first."""
    said: Mapping[str, str] = lane.statuses[cell]
    return "".join(LETTERS[Status(said[run.name])] if run.name in said else " " for run in lane.runs)


def _run(run: Closed) -> dict[str, Any]:
    return {
        "name": run.name, "began": _date(run), "failing": run.failing, "cells": sum(run.by_status.values()),
        "whole": run.whole, "torch": run.manifest.torch, "commit": run.manifest.backend_commit,
    }  # fmt: skip


def _date(run: Closed) -> str:
    at = began(run.name)
    return at.strftime("%Y-%m-%d %H:%M") if at else ""
