"""`perf`: the speed of a backend: `run` measures it, `diff` compares two runs, `show` ranks the cases by lost time."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.commands.edge import (
    Commands,
    Mistake,
    backend_option,
    make_directory,
    matching,
    mistakes,
    results_option,
    seconds_option,
    tell,
    timeout_option,
)
from conformance.commands.recorded import model_option, recorded_option, recordings
from conformance.models.model import Recording
from conformance.perf import diff, ranking, session, store, text
from conformance.perf.model import End, Size
from conformance.results.store import StoreError
from conformance.support import options
from conformance.support.exit_codes import Exit
from conformance.support.options import OptionError
from conformance.support.signals import interrupt_once
from conformance.vocabulary import DTYPES

if TYPE_CHECKING:
    from conformance.backends import Capabilities
    from conformance.perf.meter import Meter


@click.group("perf", cls=Commands)
def perf_() -> None:
    """Measure how fast the backend's calls are, compare two runs, and rank what to speed up next."""


@perf_.command("run")
@backend_option
@click.option("-k", "pattern", default="", metavar="PATTERN", help="Overloads that contain or match a shell pattern.")
@click.option("--overloads", default=None, metavar="A,B", help="Only these overloads.")
@click.option("--sizes", default=None, metavar="A,B", help=f"Of {', '.join(Size)}; default: all.")
@click.option("--dtype", default="float32", show_default=True, help="The dtype of the arguments.")
@seconds_option("--seconds-per-case", 1.0, "The time to measure each case, on the device and on CPU together.")
@click.option(
    "--rounds", type=click.IntRange(1), default=session.ROUNDS, show_default=True, help="Processes that measure a case."
)
@timeout_option(60.0, "a round of a case")
@results_option
def run_(
    backend: str, pattern: str, overloads: str | None, sizes: str | None, dtype: str, results: Path, **times: Any
) -> None:
    """Time calls on the device and on CPU in turn, at several sizes, and store the times.

    The exit code is 1 if no case could be measured.
    """
    from conformance import backends
    from conformance.corpus.reader import CorpusError
    from conformance.perf.meter import Meter

    with mistakes(backends.BackendNotFound, CorpusError, OptionError, StoreError):
        options.one_of("--dtype", "dtype", dtype, DTYPES)
        chosen = options.names("--sizes", "size", sizes, [s.value for s in Size])
        found = backends.find(backend or backends.default())
        meter = Meter(found, dtype, times["seconds_per_case"] / times["rounds"])
        every = _overloads(found, meter.corpus.overloads)
        taken = _chosen(every, pattern, overloads)
        wanted = [size for size in Size if chosen is None or size.value in chosen]
        complete = len(taken) == len(every) and chosen is None
        code = _run(meter, taken, wanted, times | {"dtype": dtype}, results, complete=complete)
    sys.exit(code)


def _run(
    meter: Meter, overloads: dict[str, str], sizes: list[Size], settings: dict[str, Any], results: Path, *,
    complete: bool,
) -> Exit:  # fmt: skip
    """Measure, store, and print the end of the run. Return the exit code."""
    from conformance.perf.manifest import manifest_of

    make_directory("--results", results / store.PERF)
    cases = len(overloads) * len(sizes)
    manifest = manifest_of(meter.backend, meter.corpus.hash, cases, sys.argv[1:], complete=complete)
    meter.prepare()
    running = session.Session(_start(meter), settings["timeout"], tell)
    interrupt_once()
    records, machine = running.run(overloads, settings["dtype"], sizes, settings["rounds"])
    path = store.save(results, manifest, machine, settings, records)
    counts = session.counts(records)
    for line in (*map(text.measured, (r for r in records if r.is_measured)), *text.limits(machine)):
        click.echo(line)
    click.echo("\n".join(text.ending(records, counts)))
    click.echo(f"results: {path}/")
    if counts.get(End.ERROR):
        return Exit.SUITE_ERROR
    if counts.get(End.NOT_REACHED):
        return Exit.INTERRUPTED
    return Exit.OK if counts.get(End.MEASURED) else Exit.CELLS_FAILED


def _start(meter: Meter) -> Callable[[], session.Asked]:
    """Return the function that starts a child: a fork, or a new interpreter if the adapter wants spawned children."""
    from conformance.running.child import Spawned

    if meter.backend.isolation == "spawn":
        return lambda: Spawned("conformance.perf.spawned", meter.recipe())
    return session.forked(meter.serve)


def _overloads(backend: Capabilities, known: tuple[str, ...]) -> dict[str, str]:
    """Return the routes of the overloads that have samples and exist in this torch."""
    from conformance.inventory import inventory

    here = {o.name: o.route.value for o in inventory(backend.device)}
    return {name: here[name] for name in known if name in here}


def _chosen(every: dict[str, str], pattern: str, given: str | None) -> dict[str, str]:
    """Return the selected overloads. Raises OptionError or Mistake for unknown names, and if none is selected."""
    named = options.names("--overloads", "overload", given, every, "conformance inventory")
    matched = matching(pattern, list(every))
    found = {name: route for name, route in every.items() if name in matched and (named is None or name in named)}
    if not found:
        raise Mistake(f"no overload is selected by -k {pattern!r} and --overloads {given!r} together")
    return found


@perf_.command("diff")
@click.argument("old")
@click.argument("new")
@click.option(
    "--least", type=click.FloatRange(0), default=diff.LEAST, show_default=True, help="The least change that "
    "counts, as a fraction of the time."
)  # fmt: skip
@results_option
def diff_(old: str, new: str, least: float, results: Path) -> None:
    """Compare two runs: cases that got slower or faster beyond the noise of both. Exit code 1 if one got slower."""
    with mistakes(StoreError):
        before, after = store.find(results, old), store.find(results, new)
    found = diff.compare(before.records, after.records, least)
    if not found.cases:
        raise Mistake(f"{before.name} and {after.name} have no case in common")
    if before.manifest.cpu != after.manifest.cpu:
        click.echo(f"CPU differs: {before.manifest.cpu} -> {after.manifest.cpu}; ratios to CPU are compared", err=True)
    click.echo("\n".join(text.difference(found)))
    sys.exit(Exit.CELLS_FAILED if found.is_worse else Exit.OK)


@perf_.command("show")
@click.argument("run")
@model_option
@recorded_option
@click.option("--most", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Show at most N.")
@results_option
def show_(run: str, model: str | None, recorded: tuple[Path, ...], most: int, results: Path) -> None:
    """Rank the cases of RUN by the seconds that they lose against what the machine allows.

    With --model or --recorded, a case counts for the calls of these models or programs, else for one call.
    """
    with mistakes(StoreError):
        found = store.find(results, run)
    taken = recordings(model, recorded)
    calls = None if taken is None else _calls(taken)
    ranks = ranking.rank(found.records, found.machine, calls)
    if not ranks:
        raise Mistake(f"{found.name}: no case was measured" + (" that the recorded calls use" if taken else ""))
    click.echo("\n".join([found.name, *text.limits(found.machine), *text.ranking(ranks, most)]))
    for overload, count in list(ranking.unmeasured(found.records, calls or {}).items())[:most]:
        click.echo(f"not measured: {overload}, {count} recorded calls")


def _calls(taken: Iterable[Recording]) -> ranking.Calls:
    """Return the calls of recorded models, by overload and number of elements."""
    found: Counter[tuple[str, int]] = Counter()
    for recording in taken:
        for call in recording.calls:
            found[call.overload, call.elements] += call.count
    return found
