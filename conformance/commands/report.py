"""`report`: the results as a site to look at, or as text."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Console

from conformance.commands.edge import RESULTS, Mistake, expected_option, mistakes
from conformance.report import gather, model, site, text
from conformance.results.store import StoreError

UNBROKEN = 200  # columns of what no terminal shows


@click.command("report")
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS, show_default=True, help="The store.")
@click.option("--text", "as_text", is_flag=True, help="Print the same in the terminal; takes no DIR.")
@click.option(
    "--runs",
    "most_runs",
    type=click.IntRange(min=2),
    default=30,
    show_default=True,
    help="How many of a lane make its history.",
)
@expected_option
@click.option(
    "--bisect", "searches", multiple=True, type=click.Path(path_type=Path), default=("bisect",), show_default=True,
    help="Where a search of `bisect` keeps its state; may be repeated.",
)  # fmt: skip
def report_(
    directory: Path | None,
    results: Path,
    as_text: bool,
    most_runs: int,
    expected: Path | None,
    searches: tuple[Path, ...],
) -> None:
    """Write the results as a static site into DIR, which opens from a file; or print them, with --text."""
    if as_text == bool(directory):
        raise Mistake("report takes DIR, where the site goes, or --text; got " + ("both" if directory else "neither"))
    with mistakes(StoreError, site.SiteError, OSError):
        if directory:
            site.check(directory)
        found = gather.gather(results, expected, searches, most_runs)
        if directory:
            page = site.write(model.site(found, datetime.now(timezone.utc)), directory)
            click.echo(
                f"{page}: {len(found.lanes)} lanes, {sum(lane.run.failing for lane in found.lanes)} failing cells"
            )
        else:
            fits = sys.stdout.isatty() or "COLUMNS" in os.environ
            text.show(found, Console(width=None if fits else UNBROKEN))
    for line in found.left_out:
        click.echo(f"left out: {line}", err=True)
    if found.broken:
        sys.exit(Mistake.exit_code)
