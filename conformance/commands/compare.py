"""`diff`: compares two runs, or the latest runs of lanes along an axis, cell by cell."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from packaging.version import InvalidVersion, Version

from conformance.commands.edge import Mistake, format_option, mistakes, results_option
from conformance.results import diff, history
from conformance.results.store import Closed, StoreError, cell_outcomes, runs

# The axes and their fields in a manifest. Lanes are compared along an axis if all other fields are equal.
AXES = {"torch": "torch", "allocator": "environment", "build": "build"}


@click.command("diff")
@click.argument("names", nargs=-1, metavar="[OLD NEW]")
@click.option("--across", type=click.Choice(list(AXES)), help="Compare the latest runs of the lanes along this axis.")
@results_option
@format_option("text", "json")
def diff_(names: tuple[str, ...], across: str | None, results: Path, form: str) -> None:
    """Compare two runs: newly failing, fixed, changed kind, new, gone, flaky; with --across, compare lanes."""
    with mistakes(StoreError):
        if across:
            _across(across, _latest(results, names), form)
        if len(names) != 2:
            raise Mistake(f"expected two runs, OLD and NEW, or --across {'|'.join(AXES)}; got {len(names)}")
        among = runs.listed(results)
        old, new = (runs.find(results, name, among) for name in names)
        for run in (old, new):
            run.check()
        found = history.changes(old, new, history.of_series(results, new.manifest.series, among))
    click.echo({"text": diff.text, "json": diff.as_json}[form](found, old.name, new.name, history.settings(old, new)))
    sys.exit(diff.exit_code(found))


def _across(axis: str, latest: list[Closed], form: str) -> None:
    """Print each group of lanes that differ only in the axis, and exit."""
    groups: dict[tuple[str, ...], list[Closed]] = defaultdict(list)
    for run in latest:
        others = (name for name in ("backend", *AXES.values()) if name != AXES[axis])
        selection = run.manifest.series.removeprefix(run.manifest.lane)
        facts = [str(getattr(run.manifest, name)) for name in others]
        key = (selection, *facts)
        groups[key].append(run)
    unlike = (group for group in groups.values() if len({_value(run, axis) for run in group}) > 1)
    compared = [sorted(group, key=lambda run: _place(run, axis)) for group in unlike]
    if not compared:
        known = ", ".join(run.name for run in latest) or "none"
        raise Mistake(f"--across {axis}: no two lanes differ only in it; runs: {known}")
    codes = []
    for group in compared:
        cells = cell_outcomes.unlike(group)
        steps = [diff.Step(_value(run, axis), all(map(run.covers, group))) for run in group]
        codes.append(diff.across_code(cells))
        notes = history.notes(group)
        if form == "json":
            click.echo(diff.across_json(steps, cells, notes))
        else:
            click.echo(diff.across_text(steps, cells, notes))
    sys.exit(max(codes, key=diff.gravity))


def _latest(results: Path, names: Iterable[str]) -> list[Closed]:
    """Return the named runs, or the latest of each lane, if possible a complete one."""
    if given := [runs.find(results, name) for name in names]:
        return given
    found = []
    for series, of_names in runs.shown_series(results).items():
        of_series = history.of_series(results, series, of_names)
        found.append(next((run for run in reversed(of_series) if run.whole), of_series[-1]))
    return found


def _value(run: Closed, axis: str) -> str:
    return str(getattr(run.manifest, AXES[axis]))


def _place(run: Closed, axis: str) -> tuple[Any, ...]:
    value = _value(run, axis)
    try:
        return (0, Version(value), "") if axis == "torch" else (1, Version("0"), value)
    except InvalidVersion:
        return (1, Version("0"), value)
