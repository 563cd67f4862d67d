"""`merge`: joins the shards of a lane to one run in the store."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import Mistake, expected_option, mistakes, results_option
from conformance.results import joined, merge
from conformance.results.merge import MergeError
from conformance.results.store import Closed, StoreError, runs
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError


@click.command("merge")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@results_option
@expected_option
def merge_(names: tuple[str, ...], results: Path, expected: Path | None) -> None:
    """Join the shards of a lane to one run; without RUN, all shards that are not merged yet.

    The exit code is that of the complete runs, or 2 if the shards of a lane do not belong to one run.
    """
    with mistakes(StoreError, TomlError, OSError):
        codes = [_tried(results, shards, expected) for shards in _sets(results, names)]
    sys.exit(Exit.INTERRUPTED if Exit.INTERRUPTED in codes else next(filter(None, codes), Exit.OK))


def _tried(results: Path, shards: list[Closed], expected: Path | None) -> Exit:
    """Merge one lane, and return the exit code. An error is printed, so that the other lanes are still merged."""
    try:
        return _merge(results, shards, expected)
    except (MergeError, StoreError, TomlError) as e:
        click.echo(f"Error: {e}", err=True)
        return Exit.INTERRUPTED


def _sets(results: Path, names: tuple[str, ...]) -> list[list[Closed]]:
    """Return the shards to merge, a list for each run. Raises Mistake if there are none."""
    if names:
        return [[runs.find(results, name) for name in names]]
    groups: dict[tuple[Any, ...], dict[str, Closed]] = defaultdict(dict)
    for shard in (runs.opened(results / runs.RUNS / name) for name in runs.shards(results)):
        groups[merge.facts(shard.manifest)][shard.manifest.shard] = shard  # the latest run of a shard
    if not groups:
        raise Mistake(f"no shards in {results / runs.RUNS}/; expected runs of pytest with --shard I/N")
    return [list(group.values()) for group in groups.values()]


def _merge(results: Path, shards: list[Closed], expected: Path | None) -> Exit:
    """Store the merged run unless it exists, print its end, and return the exit code."""
    run, end = joined.join(results, shards, expected)
    if end is None:
        click.echo(f"{run}: already merged, {_of(shards)}")
        return Exit.OK
    click.echo(f"{run}: {_of(shards)}\n{end.text}")
    return end.code


def _of(shards: list[Closed]) -> str:
    return f"of {len(shards)} shard{'s'[: len(shards) != 1]}"
