"""`merge`: the shards of a lane become one run in the store."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import RESULTS, Mistake, expected_option, mistakes
from conformance.results import expectations, expected_files, merge, run_end
from conformance.results.merge import MergeError, Part
from conformance.results.store import Closed, StoreError, runs
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError


@click.command("merge")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, show_default=True)
@expected_option
def merge_(names: tuple[str, ...], results: Path, expected: Path | None) -> None:
    """Put the shards of a lane together to one run; without RUN, those of each lane that have not been.

    Ends as the whole runs would have, or with 2 where the shards of a lane are not those of one run.
    """
    with mistakes(StoreError, TomlError, OSError):
        codes = [_tried(results, shards, expected) for shards in _sets(results, names)]
    sys.exit(Exit.INTERRUPTED if Exit.INTERRUPTED in codes else next(filter(None, codes), Exit.OK))


def _tried(results: Path, shards: list[Closed], expected: Path | None) -> Exit:
    """One lane that cannot be merged is said, and does not keep the others from it."""
    try:
        return _merge(results, shards, expected)
    except (MergeError, StoreError) as e:
        click.echo(f"Error: {e}", err=True)
        return Exit.INTERRUPTED


def _sets(results: Path, names: tuple[str, ...]) -> list[list[Closed]]:
    """The shards to be put together, a list for each run. Raises Mistake where there are none."""
    if names:
        return [[runs.find(results, name) for name in names]]
    groups: dict[tuple[Any, ...], dict[str, Closed]] = defaultdict(dict)
    for shard in (runs.opened(results / runs.RUNS / name) for name in runs.shards(results)):
        groups[merge.facts(shard.manifest)][shard.manifest.shard] = shard  # a later one takes an earlier one's place
    if not groups:
        raise Mistake(f"no shards in {results / runs.RUNS}/; expected runs made with --shard I/N")
    return [list(group.values()) for group in groups.values()]


def _merge(results: Path, shards: list[Closed], expected: Path | None) -> Exit:
    """Keep the merged run, unless it is there already, and print what it comes to."""
    if (results / runs.RUNS / (run := merge.run_of([s.manifest for s in shards]))).is_dir():
        click.echo(f"{run}: is merged already, {_of(shards)}")
        return Exit.OK
    parts = [Part(s.manifest, runs.summary(s), runs.load(s)) for s in shards]
    merge.check(parts)
    manifest, summary, observations = merge.merged(parts)
    directory = runs.join(results, manifest, shards, summary)
    known = expectations.load(expected_files.of_results(expected, manifest))
    end = run_end.of_run(manifest, summary, observations, known, str(directory))
    click.echo(f"{run}: {_of(shards)}\n{end.text}")
    return end.code


def _of(shards: list[Closed]) -> str:
    return f"of {len(shards)} shard{'s'[: len(shards) != 1]}"
