"""The plan of docs/scale.md as tables: measured inputs, and numbers that are computed from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.kill_rate.tables import Table
from tools.settings.model import SETTINGS, Measured

LANES = 20 * 12 * 12  # backends, torch versions, environments
NIGHTS, KEPT = 365, 120  # of a year; whose results `nightly forget` keeps
NIGHT_H = 8  # hours in which a night's runs are to end
FULL = "`pytest --pyargs conformance --tier full"
START_S, CELL_MS, CELL_BYTES = 23, 5.0, 11.7  # CPU time of a start and of a cell; bytes of a cell in the store
CORE_HOUR_USD, GIGABYTE_MONTH_USD = 0.04, 0.023  # assumed


@dataclass(frozen=True, slots=True)
class Plan:
    """The costs of a year if a lane has this number of cells."""

    cells: int

    @property
    def lane_s(self) -> float:
        """CPU seconds of a lane."""
        return START_S + self.cells * CELL_MS / 1e3

    @property
    def night_h(self) -> float:
        """Core hours of a night."""
        return LANES * self.lane_s / 3600

    @property
    def run_gb(self) -> float:
        """Gigabytes that a run stores."""
        return self.cells * CELL_BYTES / 1e9


def cells(measured: Sequence[Measured]) -> Measured:
    """Return the latest full lane of torch 2.13 on a machine as it is."""
    found = [one for one in measured if (one.setting, one.command) == (SETTINGS[0].name, "2.13")]
    return max(found, key=lambda one: one.date)


def inputs(measured: Sequence[Measured]) -> Table:
    """Return the inputs, each with its measurement."""
    lane = cells(measured)
    return ["input", "value", "from"], [
        ["cells of a full lane", f"{lane.total:,}", f"torch 2.13, {lane.date}: [settings.md](settings.md)"],
        ["CPU seconds to start and to collect", f"{START_S}", f"{FULL} --shard 171/1200`"],
        ["CPU milliseconds a cell, both sides and the suite", f"{CELL_MS}", f"{FULL} --shard 17/60` without the start"],
        ["bytes a cell in the store", f"{CELL_BYTES}", f"{FULL} --shard 17/60`"],
    ]  # fmt: skip


def night(measured: Sequence[Measured]) -> Table:
    """Return the costs of a night."""
    plan = Plan(cells(measured).total)
    return ["a night", "value"], [
        ["CPU seconds of a lane: start + cells × time of a cell", rounded(plan.lane_s)],
        [f"core hours of {LANES:,} lanes", rounded(plan.night_h)],
        [f"cores that finish it in {NIGHT_H} hours", rounded(plan.night_h / NIGHT_H)],
    ]


def year(measured: Sequence[Measured]) -> Table:
    """Return the storage and the costs of a year of nights."""
    plan = Plan(cells(measured).total)
    kept = LANES * KEPT * plan.run_gb
    return ["a year", "value"], [
        ["runs", f"{LANES * NIGHTS:,}"],
        ["megabytes of the rows of a run", rounded(1e3 * plan.run_gb)],
        ["gigabytes of all runs", rounded(LANES * NIGHTS * plan.run_gb)],
        [f"gigabytes of the latest {KEPT} nights, which `conformance nightly forget` keeps", rounded(kept)],
        [f"cores at {CORE_HOUR_USD} USD an hour", f"{rounded(NIGHTS * plan.night_h * CORE_HOUR_USD)} USD"],
        [f"{KEPT} nights in the store at {GIGABYTE_MONTH_USD} USD a gigabyte a month",
         f"{rounded(12 * kept * GIGABYTE_MONTH_USD)} USD"],
    ]  # fmt: skip


def rounded(number: float) -> str:
    """Return a number rounded to two significant digits: ``1,400``, ``4.1``."""
    short = float(f"{number:.2g}")
    return f"{short:,.0f}" if short >= 10 else f"{short:g}"
