"""`contract`: the programs about PyTorch's promises around the ops, and how they end on a backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.commands.edge import Mistake, backend_option, mistakes, need_directory, timeout_option
from conformance.results import contract_ends
from conformance.results.contract_ends import End, Ended, Ends
from conformance.support.exit_codes import Exit
from conformance.support.markup import cell
from conformance.support.suggestions import unknown
from conformance.vocabulary import DEFAULT_SEED, CellId, Status

if TYPE_CHECKING:
    from conformance.plan.plan import Plan
    from conformance.records import Observation
    from conformance.scenarios.model import Scenario


@click.command("contract")
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@backend_option
@timeout_option(300.0, "a program")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="A JSON file of results by backend. Those of this backend's programs that run are replaced, or added.",
)  # fmt: skip
def contract_(areas: tuple[str, ...], backend: str, timeout: float, output: Path | None) -> None:
    """Run the programs about what PyTorch promises of devices, by area; without AREA, all. Print a Markdown table.

    Each ends as supported, unsupported (the backend says that it does not offer it), partly supported, not compared
    (CPU's side died or did not return), or failing. The exit code is 1 if one is failing.
    """
    from conformance import backends
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection
    from conformance.plan.tiers import TIERS
    from conformance.scenarios import catalogue

    found = [scenario for name in catalogue.names() if (scenario := catalogue.find(name)).area]
    every_area = sorted({scenario.area for scenario in found})
    for area in areas:
        if area not in every_area:
            raise Mistake(unknown("area", area, every_area))
    stored = {} if output is None else _stored(output)
    with mistakes(backends.BackendNotFound):
        plan = Plan(backends.find(backend or backends.default()), Selection(tier=TIERS["full"]), DEFAULT_SEED)
    click.echo("| area | program | end |\n| --- | --- | --- |")
    ends: dict[str, Ended] = {}
    try:
        for name, ended in _ended(plan, [s for s in found if not areas or s.area in areas], timeout):
            ends[name] = ended
            click.echo(f"| {ended.area} | `{name}` | {cell(ended.text)} |")
    finally:  # after Ctrl-C, too
        if output is not None and ends:
            known = {scenario.name for scenario in found}
            with mistakes(OSError):
                contract_ends.save(output, contract_ends.renewed(stored, plan.backend.asked, ends, known))
    sys.exit(Exit.CELLS_FAILED if any(ended.end is End.FAILING for ended in ends.values()) else Exit.OK)


def _stored(file: Path) -> Ends:
    """Return the ends in a file, {} if there is no file. Raises Mistake if the file cannot be read or written."""
    need_directory("--output", file)
    with mistakes(contract_ends.EndsError, OSError):
        return contract_ends.load(file) if file.exists() else {}


def _ended(plan: Plan, scenarios: list[Scenario], timeout: float) -> Iterator[tuple[str, Ended]]:
    """Run each program on the plan's backend in a child process that may die. Yields its name and its end."""
    from conformance.running.cell_runner import CellRunner
    from conformance.running.runner import SCENARIO_TIMES, Runner

    runner = Runner(CellRunner(plan), timeout / SCENARIO_TIMES)
    try:
        for scenario in sorted(scenarios, key=lambda s: (s.area, s.name)):
            if scenario.accelerators and plan.backend.kind == "cpu":
                end, detail = End.NOT_ASKED, "it is about accelerators"
            else:
                end, detail = _end(runner.observe(CellId.of_scenario(scenario.name)))
            yield scenario.name, Ended(scenario.area, scenario.promise, end, detail)
    finally:
        runner.close()


def _end(observation: Observation) -> tuple[End, str]:
    """Return how a program ended, and the reason or the first finding."""
    from conformance.explain import describe

    if observation.status is Status.UNSUPPORTED:
        return End.NOT_COMPARED if observation.signal else End.UNSUPPORTED, observation.reason
    if observation.status is Status.PASS:
        return (End.PARTLY if observation.reason else End.SUPPORTED), observation.reason
    lines = [line for failure in observation.failures for line in describe.findings(failure)]
    return End.FAILING, lines[0] if lines else str(observation.status)
