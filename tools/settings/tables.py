"""The results of the settings as tables for the docs: (head, rows) of Markdown cells. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tools.kill_rate.tables import Table
from tools.settings.model import SETTINGS, Measured

NOT_RUN = ""


def ends(measured: Sequence[Measured]) -> Table:
    """Return a row for each processor, its kernels, and setting: the outcome of each command, and its day."""
    commands = sorted({one.command for one in measured})
    by = {(one.kernels, one.setting, one.command): one for one in measured}
    rows = [
        [*kernels, s.name, f"`{s.words}`" if s.words else "", *(_end(by.get((kernels, s.name, c))) for c in commands)]
        for kernels in sorted({one.kernels for one in measured})
        for s in SETTINGS
        if any((kernels, s.name, c) in by for c in commands)
    ]
    return ["processor", "kernels", "setting", "typed", *(c if c == "tests" else f"lane {c}" for c in commands)], rows


def _end(one: Measured | None) -> str:
    return f"{one.failing} of {one.total:,} fail ({one.date})" if one else NOT_RUN


def differences(measured: Sequence[Measured]) -> Table:
    """Return a row for each kind of difference from the first setting, with its reason."""
    rows = [
        [
            one.cpu,
            one.setting,
            one.command,
            one.date,
            f"{d.before} → {d.after}",
            str(d.cells),
            d.reason,
            f"`{d.example}`",
        ]
        for one in measured
        for d in one.differences
    ]
    return ["processor", "setting", "lane", "measured on", "status", "cells", "reason", "first"], rows
