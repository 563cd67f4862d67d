"""The lists of the first page, which is drawn before any lane's cells are loaded."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from conformance.report import gather, model, overview
from conformance.report.model import Site
from conformance.results.store import runs, views
from tests.records import observed
from tests.report.results import bad, nights, ran

OTHER = "demo-torch2.13-malloc-release"


def site(results: Path) -> Site:
    return model.site(gather.gather(results, results, (), 30), datetime(2026, 1, 3, tzinfo=timezone.utc))


def test_cells_that_newly_fail_alike_are_one_group_over_all_lanes(tmp_path: Path) -> None:
    cells = [observed("masked_fill_.Scalar", f"float32-{layout}") for layout in ("offset_gap", "step2")]
    for lane in ("demo-torch2.8-malloc-release", OTHER):
        ran(tmp_path, 0, *cells, observed("where.self", "float32-offset_gap"), lane=lane, backend_commit="a")
        broken = [bad(cell=f"float32-{layout}") for layout in ("offset_gap", "step2")]
        ran(tmp_path, 1, *broken, bad("where.self"), lane=lane, backend_commit="b")
    first, second = site(tmp_path).main["newly"]
    assert (first["overload"], first["count"], len(first["cells"])) == ("masked_fill_.Scalar", 4, 2)
    assert (second["overload"], second["count"], len(second["cells"])) == ("where.self", 2, 1)
    assert first["lanes"] == second["lanes"] == ["demo-torch2.8-malloc-release", OTHER]
    assert (first["before"], first["after"], first["change"]) == ("pass", "fail (untouched)", "newly failing")


def test_the_overloads_with_most_failing_cells_come_first(tmp_path: Path) -> None:
    for n in range(overview.MOST + 2):
        ran(tmp_path, 0, *(bad(f"op_{k}") for k in range(n + 1)), lane=f"demo-torch2.{n}-malloc-release")
    found = [(one["overload"], one["count"]) for one in site(tmp_path).main["worst"]]
    assert found == [(f"op_{n}", overview.MOST + 2 - n) for n in range(overview.MOST)]


def test_the_rows_of_a_lane_are_read_when_its_part_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nights(tmp_path)
    read: list[str] = []
    rows = views.rows

    def counted(run: runs.Closed) -> list[views.Row]:
        read.append(run.manifest.lane)
        return rows(run)

    monkeypatch.setattr(views, "rows", counted)
    parts = site(tmp_path).parts()
    assert read == []
    assert next(parts)[0] == "lane-0"
    assert read == ["demo-torch2.8-malloc-release"]
    assert [name for name, _ in parts] == ["pages-0-0", "lane-1"]


def test_runs_with_the_same_cells_are_read_once_for_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n, alike in enumerate(("one", "one", "two", "", "")):
        ran(tmp_path, 0, observed("mm"), observed(f"op_{alike}"), lane=f"demo-torch2.{n}-malloc-release", cells=alike)
    read: list[str] = []
    cells = views.cells

    def counted(run: runs.Closed) -> list[tuple[str, str, str, str]]:
        read.append(run.manifest.cells)
        return cells(run)

    monkeypatch.setattr(views, "cells", counted)
    assert [name for _, name in site(tmp_path).main["table"]["ops"]] == ["mm", "op_", "op_one", "op_two"]
    assert read == ["one", "two", "", ""]


def test_an_unfinished_run_does_not_stand_for_the_cells_of_others(tmp_path: Path) -> None:
    ran(tmp_path, 0, observed("mm"), cells="same", collected=2)
    ran(tmp_path, 0, observed("mm"), observed("neg"), cells="same", lane=OTHER)
    assert [name for _, name in site(tmp_path).main["table"]["ops"]] == ["mm", "neg"]
