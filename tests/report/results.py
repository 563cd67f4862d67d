"""Stores made by hand for the tests of the report."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from conformance.records import CaseFailure, Mismatch, Observation, PlacedArgument
from conformance.results import store
from conformance.results.store import runs
from conformance.results.store.manifest import run_name
from conformance.vocabulary import CellId, Check, Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
NIGHT = datetime(2026, 1, 1, 4, tzinfo=timezone.utc)
HOSTILE = "</script><script>window.planted=1</script><img src=x onerror=window.planted=1>\u2028'\"&\\"

# A case of masked_fill_ that changed bytes in the gap behind its first row.
GAP = Mismatch(Check.UNTOUCHED, "self", {"kind": "bytes", "bytes": 8, "byte": 32, "of": 68, "before": 255, "device": 0})
ARGUMENTS = (
    PlacedArgument("self", "float32", "offset_gap", (2, 3), (5, 1), 5, 17),
    PlacedArgument("mask", "bool", "contiguous", (2, 3), (3, 1), 0, 6),
    PlacedArgument("arg 2", text="1.5"),
)

PROGRAM = "import torch\n\nprint(torch.ones(3) < 2)\n"


def ran(results: Path, night: int, *cells: Observation, lane: str = LANE, **given: Any) -> runs.Closed:
    """Store and return a closed run of these cells, with the summary of such a run."""
    given = {"collected": len(cells), "run": run_name(lane, NIGHT + timedelta(days=night)), "lane": lane, **given}
    counts = {s.value: sum(c.status is s for c in cells) for s in Status}
    summary = {
        "by_status": counts, "wall_s": 61.5, "cpu_s": 120.0, "collect_s": 2.0, "cases": 2 * len(cells),
        "raw_call_share": 0.5, "schemas": {},
        "routes": {
            "convolution": "composite", "_convolution": "composite", "convolution_overrideable": "unsupported",
        },
        "coverage": {
            "compared": 1, "total": 3, "by_route": {"native": {"compared": 1, "total": 2}},
            "not_reached": [{"overload": "hash", "reason": "nothing to compare"}],
        },
    }  # fmt: skip
    with store.Writer(results / lane, told := manifest(**given)) as writer:
        for cell in cells:
            writer.append(cell)
        writer.finish(summary)
    return runs.opened(results / store.RUNS / told.run)


def bad(
    overload: str = "masked_fill_.Scalar", cell: str = "float32-offset_gap", mismatch: Mismatch = GAP
) -> Observation:
    """Return a failing cell, as the suite records it."""
    dtype, _, layout = cell.partition("-")
    of = CellId("masking", overload, dtype, layout)
    case = f"{of}#opinfo.masked_fill.3@self"
    failure = CaseFailure(case, (mismatch,), ARGUMENTS, calls=("masked_fill_", "fill_"))
    return Observation(of, "native", Status.FAIL, 3, (failure,), wall_ns=2_000_000, compared=3, script=PROGRAM)


def nights(results: Path, **given: Any) -> None:
    """Store two nights of a lane: one cell newly fails, one is repaired, one crashes twice. Store a second lane."""
    crash = observed("mm", status=Status.CRASH, signal="SIGSEGV", checks=("",), cases=1, route="fallback")
    ran(results, 0, observed("masked_fill_.Scalar", "float32-offset_gap"), bad("where.self"), crash, backend_commit="a")
    ran(results, 1, bad(), observed("where.self", "float32-offset_gap"), crash, backend_commit="b", **given)
    ran(results, 1, observed("mm"), lane="demo-torch2.13-malloc-release", torch="2.13.0")
