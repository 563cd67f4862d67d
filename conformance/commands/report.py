"""`report`: writes the results as a site, or prints them as text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Console

from conformance.bisect import record
from conformance.commands.edge import Mistake, expected_option, mistakes, results_option
from conformance.report import gather, model, site, text
from conformance.results.store import StoreError
from conformance.support.wording import counted

UNBROKEN = 200  # columns of output that does not go to a terminal


@click.command("report")
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@results_option
@click.option("--text", "as_text", is_flag=True, help="Print the results in the terminal; takes no DIR.")
@click.option(
    "--runs",
    "most_runs",
    type=click.IntRange(min=2),
    default=30,
    show_default=True,
    help="Number of runs in a lane's history.",
)
@expected_option
@click.option(
    "--bisect", "searches", multiple=True, type=click.Path(path_type=Path), default=("bisect",), show_default=True,
    help="A directory with the state of a `bisect`; may be repeated.",
)  # fmt: skip
def report_(
    directory: Path | None,
    results: Path,
    as_text: bool,
    most_runs: int,
    expected: Path | None,
    searches: tuple[Path, ...],
) -> None:
    """Write the results as a static site to DIR, which needs no server; with --text, print them."""
    context = click.get_current_context()
    if context.get_parameter_source("searches") is click.core.ParameterSource.COMMANDLINE:
        _check_searches(searches)
    if as_text == bool(directory):
        raise Mistake("expected either DIR, for the site, or --text; got " + ("both" if directory else "neither"))
    with mistakes(StoreError, site.SiteError, OSError):
        if directory:
            site.check(directory)
        found = gather.gather(results, expected, searches, most_runs)
        if directory:
            page = site.write(model.site(found, datetime.now(timezone.utc)), directory)
            failing = sum(lane.run.failing for lane in found.lanes)
            click.echo(f"{page}: {counted(len(found.lanes), 'lane')}, {counted(failing, 'failing cell')}")
        else:
            fits = sys.stdout.isatty() or "COLUMNS" in os.environ
            text.show(found, Console(width=None if fits else UNBROKEN))
    for line in found.left_out:
        click.echo(f"left out: {line}", err=True)
    if found.broken:
        sys.exit(Mistake.exit_code)


def _check_searches(directories: Iterable[Path]) -> None:
    """Raise Mistake for a directory without a search."""
    for directory in directories:
        if not (directory / record.STATE).is_file():
            raise Mistake(f"--bisect {directory}: has no {record.STATE}; expected the --out of `conformance bisect`")
