"""`next`: what to mend or implement next, ranked from a stored run."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.commands.edge import RESULTS, Mistake, mistakes
from conformance.results import next_steps, store
from conformance.results.causes_text import counted, some
from conformance.results.next_steps import Action, Step
from conformance.results.store import runs
from conformance.support import command_lines


@click.command("next")
@click.argument("run", required=False, default="")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, show_default=True)
@click.option("--most", type=int, default=20, show_default=True, metavar="N", help="List at most N steps.")
def next_(run: str, results: Path, most: int) -> None:
    """Rank what to mend or implement next by the cells that it lets pass; without RUN, in the latest run."""
    with mistakes(store.StoreError, OSError):
        path = store.find(results, run or _latest(results))
        read = store.read(path)
        summary = store.read_summary(path if path.is_dir() else path.parent)
    found = next_steps.steps(read.observations, summary.get("limits", ()))
    click.echo(f"{read.manifest.series}: {counted(len(found), 'step')}, those with most cells first")
    for number, step in enumerate(found[:most], start=1):
        click.echo("\n".join(_lines(number, step, read.manifest.backend_for_commands)))
    if len(found) > most:
        click.echo(f"... and {len(found) - most} more; --most {len(found)} lists them")
    if waiting := next_steps.waiting(read.observations):
        click.echo(f"{counted(waiting, 'cell')} of composites could not run; most wait for operators to implement")


def _latest(results: Path) -> str:
    names = runs.names(results)
    if not names:
        raise Mistake(f"no closed run in {results / store.RUNS}/; expected a RUN, or another --results")
    return names[-1]


def _lines(number: int, step: Step, backend: str) -> list[str]:
    cells = f"{counted(step.cells, 'cell')}"
    if step.action is Action.PRIMITIVE:
        return [f"{number:>3}. mend the primitive {step.what}: {cells} not reached", f"     {step.note}"]
    if step.action is Action.IMPLEMENT:
        return [f"{number:>3}. implement {step.what}: {cells} without a kernel ({some(step.overloads)})"]
    lines = [f"{number:>3}. mend {step.what}: {cells} of {counted(len(step.overloads), 'overload')} fail"]
    lines[0] += f" ({some(step.overloads)})"
    return lines + ([f"     repeat: {command_lines.repeat(step.example, backend)}"] if "#" in step.example else [])
