"""`matrix`: prints the CI jobs of the lanes in matrices/."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from conformance.commands.edge import Mistake, format_option, mistakes, results_option
from conformance.lanes import jobs, matrix
from conformance.lanes.jobs import Job, JobError
from conformance.lanes.matrix import Lane
from conformance.results.store import StoreError, runs
from conformance.support.toml_table import TomlError
from conformance.support.wording import counted

MATRICES = Path("matrices")


@click.command("matrix")
@format_option("table", "github", "json")
@click.option("--lanes", default="", metavar="A,B", help="Only these lanes (names or patterns), also on demand.")
@click.option("--torch", default="", metavar="A,B", help="Only lanes of these torch versions.")
@click.option("--minutes", type=float, default=30.0, show_default=True, help="The longest duration of a job.")
@click.option("--workers", type=click.IntRange(min=1), default=4, show_default=True, help="Processes of a job.")
@click.option("--output", default="", metavar="NAME", help="With github: the name of the step's output.")
@results_option
def matrix_jobs(form: str, lanes: str, torch: str, minutes: float, workers: int, output: str, results: Path) -> None:
    """Print the jobs of the lanes: session, shard and minutes. Lanes are split by the durations in the results."""
    with mistakes(TomlError, JobError, StoreError):
        chosen = chosen_lanes(lanes, torch)
        measured = runs.seconds(results, {lane.name: workers for lane, _ in chosen})
        found = jobs.plan(chosen, measured, minutes, jobs.MOST if form == "github" else None)
    entries = [job.to_json() for job in found]
    if form == "table":
        Console().print(_table(found))
    elif form == "json":
        click.echo(json.dumps(entries, indent=1))
    else:
        line = json.dumps({"include": entries})
        click.echo(f"{output}={line}" if output else line)


def chosen_lanes(lanes: str, torch: str) -> list[tuple[Lane, str]]:
    """Return the lanes that --lanes and --torch name, with their sessions. Raises TomlError, JobError or Mistake."""
    matrices = matrix.load_all(MATRICES)
    if not matrices:
        raise Mistake(f"no matrix in {MATRICES}/; expected <backend>.toml")
    return jobs.choose(matrices, _split(lanes), _split(torch))


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _table(found: Sequence[Job]) -> Table:
    table = Table(title=counted(len(found), "job"))
    for name in ("session", "shard", "minutes"):
        table.add_column(name, no_wrap=True)
    table.add_column("lane", overflow="fold")
    for job in found:
        table.add_row(job.session, job.shard, "?" if job.minutes is None else f"{job.minutes:.1f}", job.lane)
    return table
