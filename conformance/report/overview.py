"""The first page's lists about all lanes: the cells that newly fail, and the overloads with most failing cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from conformance.report.cells import Table
from conformance.report.gather import LaneData
from conformance.results.diff import Change, Difference

MOST = 10  # of each list


def newly(lanes: Iterable[LaneData], table: Table) -> list[dict[str, Any]]:
    """Return groups of cells that newly fail: of one overload, with the same change. The largest come first."""
    groups: dict[tuple[str, str, str, str], list[tuple[str, Difference]]] = defaultdict(list)
    for lane in lanes:
        for found in lane.changes:
            if found.change is Change.NEWLY_FAILING:
                groups[_alike(found)].append((lane.name, found))
    largest = sorted(groups.items(), key=lambda item: -len(item[1]))[:MOST]
    return [_group(alike, members, table) for alike, members in largest]


def _alike(found: Difference) -> tuple[str, str, str, str]:
    pair = found.pair
    before, after = (outcome.kind if outcome else "absent" for outcome in (pair.before, pair.after))
    return pair.cell.overload, before, after, found.note


def _group(
    alike: tuple[str, str, str, str], members: list[tuple[str, Difference]], table: Table
) -> dict[str, Any]:  # fmt: skip
    overload, before, after, note = alike
    found = dict.fromkeys(table.reference(difference.pair.cell) for _, difference in members)
    return {
        "change": str(Change.NEWLY_FAILING), "overload": overload, "before": before, "after": after, "note": note,
        "cells": list(found)[:2],  # the page shows one cell by its own name
        "lanes": list(dict.fromkeys(name for name, _ in members)), "count": len(members),
    }  # fmt: skip


def worst(lanes: Iterable[LaneData]) -> list[dict[str, Any]]:
    """Return the overloads with most failing cells over all lanes."""
    counts = Counter((o.cell.family, o.cell.overload) for lane in lanes for o in lane.failing)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    return [{"family": family, "overload": overload, "count": count} for (family, overload), count in ranked]
