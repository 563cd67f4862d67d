"""`contract`: what PyTorch promises of a device around the ops, and what a backend does of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.commands.edge import Mistake, backend_option, mistakes, need_directory, timeout_option
from conformance.support.exit_codes import Exit
from conformance.support.markup import cell
from conformance.support.suggestions import unknown
from conformance.support.whole_file import write_text
from conformance.vocabulary import DEFAULT_SEED, CellId, Status, Word

if TYPE_CHECKING:
    from conformance.plan.plan import Plan
    from conformance.records import Observation
    from conformance.scenarios.model import Scenario


class End(Word):
    """How a program about the contract ends on a backend."""

    SUPPORTED = "supported", "its results are those that PyTorch promises"
    PARTLY = "partly supported", "so are those of its results that the backend offers"
    UNSUPPORTED = "unsupported", "the backend says that it does not offer what the program needs"
    NOT_COMPARED = "not compared", "the program did not come to its end on CPU, so nothing says what is right"
    FAILING = "failing", "a result is wrong, or the program raised or died"
    NOT_ASKED = "not asked", "it is about accelerators, and the backend is CPU"


@dataclass(frozen=True, slots=True)
class Ended:
    """A program about the contract, and how it ended. ``detail``: what is lacking or wrong."""

    area: str
    promise: str
    end: End
    detail: str = ""

    @property
    def text(self) -> str:
        return f"{self.end}: {self.detail}" if self.detail else str(self.end)


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
    known = sorted({scenario.area for scenario in found})
    for area in areas:
        if area not in known:
            raise Mistake(unknown("area", area, known))
    ends_of = {} if output is None else _stored(output)
    with mistakes(backends.BackendNotFound):
        plan = Plan(backends.find(backend or backends.default()), Selection(tier=TIERS["full"]), DEFAULT_SEED)
    click.echo("| area | program | end |\n| --- | --- | --- |")
    ends: dict[str, Ended] = {}
    try:
        for name, ended in _ended(plan, [s for s in found if not areas or s.area in areas], timeout):
            ends[name] = ended
            click.echo(f"| {ended.area} | `{name}` | {cell(ended.text)} |")
    finally:  # Ctrl-C loses none of them
        if output is not None and ends:
            _store(output, ends_of, plan.backend.asked, ends, {scenario.name for scenario in found})
    sys.exit(Exit.CELLS_FAILED if any(ended.end is End.FAILING for ended in ends.values()) else Exit.OK)


def _stored(file: Path) -> dict[str, Any]:
    """Return the ends in a file by backend, {} if there is no file. Raises Mistake if it cannot be renewed."""
    need_directory("--output", file)
    if not file.exists():
        return {}
    with mistakes(OSError):
        text = file.read_text(encoding="utf-8")
    try:
        stored = json.loads(text)
    except ValueError as e:
        raise Mistake(f"--output {file}: not JSON: {e}; expected a file that `conformance contract` wrote") from e
    if not isinstance(stored, dict) or not all(map(_are_ends, stored.values())):
        raise Mistake(f"--output {file}: expected a file that `conformance contract` wrote: the ends of each backend")
    return stored


def _are_ends(programs: Any) -> bool:
    """Return whether a JSON value has the ends of a backend's programs."""
    return isinstance(programs, dict) and all(isinstance(end, dict) and "area" in end for end in programs.values())


def _store(
    file: Path, ends_of: Mapping[str, Any], backend: str, ends: Mapping[str, Ended], known: Collection[str]
) -> None:
    """Write the ends of a backend's programs, with those of its other ``known`` programs in ``ends_of``."""
    others = {name: end for name, end in ends_of.get(backend, {}).items() if name in known and name not in ends}
    merged = others | {name: asdict(ended) for name, ended in ends.items()}
    in_order = {name: merged[name] for name in sorted(merged, key=lambda n: (merged[n]["area"], n))}
    with mistakes(OSError):
        write_text(file, f"{json.dumps({**ends_of, backend: in_order}, indent=1)}\n")


def _ended(plan: Plan, scenarios: list[Scenario], timeout: float) -> Iterator[tuple[str, Ended]]:
    """Yield how each program ends on the plan's backend, by its name, each in a child process that may die."""
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
    """Return how a program ended, with what is lacking or wrong."""
    from conformance.explain import describe

    if observation.status is Status.UNSUPPORTED:
        return End.NOT_COMPARED if observation.signal else End.UNSUPPORTED, observation.reason
    if observation.status is Status.PASS:
        return (End.PARTLY if observation.reason else End.SUPPORTED), observation.reason
    lines = [line for failure in observation.failures for line in describe.findings(failure)]
    return End.FAILING, lines[0] if lines else str(observation.status)
