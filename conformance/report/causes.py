"""The causes of a lane's failures, as the site's page of causes has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from conformance.report import failures
from conformance.report.cells import Table
from conformance.report.gather import LaneData
from conformance.results import causes, causes_text
from conformance.results.causes import Cause, PassingCell
from conformance.results.store.views import Row
from conformance.vocabulary import CellId, Status


def of_lane(lane: LaneData, rows: Iterable[Row], table: Table) -> dict[str, Any]:
    """Return the causes of the failures that no rule expects, those that explain most first, and a summary text.

    ``rows``: the rows of the lane.
    """
    failing = [o for o in lane.failing if not failures.is_known(o, lane)]
    found = causes.of_failures(failing, _passing(rows)) if failing else []
    shown = [_shown(cause, table, lane.run.manifest.backend_for_commands) for cause in found]
    return {"causes": shown, "to_mend": causes_text.to_mend(found)}


def _passing(rows: Iterable[Row]) -> Iterator[PassingCell]:
    return (PassingCell(CellId(*row[:4]), row.route) for row in rows if row.status == Status.PASS)


def _shown(cause: Cause, table: Table, backend: str) -> dict[str, Any]:
    counts = Counter(cell.overload for cell in cause.cells)
    callers = set(cause.callers)
    return {
        "name": causes_text.name(cause), "kernel": cause.kernel,
        "cells": [table.of(cell) for cell in cause.cells],
        "overloads": [{"name": o, "cells": counts[o], "own": o not in callers} for o in cause.overloads],
        "manner": asdict(cause.manner), "fails_by": causes_text.in_common(cause),
        "contrasts": [{"axis": c.axis, "failing": c.failing, "passing": c.passing} for c in cause.contrasts],
        "example": cause.example, "cell": table.of(cause.example_cell),
        "commands": causes_text.commands(cause, backend),
    }  # fmt: skip
