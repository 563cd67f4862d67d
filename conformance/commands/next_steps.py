"""`next`: the next steps to fix or implement, ranked from a stored run or from the routes of a backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import RESULTS, Mistake, mistakes, recorded_backend_option, results_option
from conformance.commands.recorded import model_option, recorded_option, recordings
from conformance.models import file
from conformance.models.model import Recording
from conformance.records import Observation
from conformance.results import next_steps, next_text, store
from conformance.results.next_steps import Models, Order
from conformance.results.store import runs
from conformance.support import options
from conformance.support.options import OptionError
from conformance.support.wording import counted


@dataclass(frozen=True)
class _Known:
    """The known facts about a backend: a stored run, or only the routes of its overloads."""

    name: str  # of the run's series or the backend
    backend: str  # as ``--backend`` takes it
    routes: Mapping[str, str]
    observations: Sequence[Observation] = ()
    limits: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = field(default=())


@click.command("next")
@click.argument("run", required=False, default="")
@recorded_backend_option
@model_option
@recorded_option
@click.option(
    "--by", default=Order.MODELS.value, show_default=True, metavar="ORDER", help="The order of the steps. " + "; ".join(
        f"{order.value}: {order.meaning}" for order in Order
    ),
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print records instead of a table.")
@results_option
@click.option(
    "--most", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="List at most N steps."
)
def next_(
    run: str, backend: str, model: str | None, recorded: tuple[Path, ...], by: str, as_json: bool, results: Path,
    most: int,
) -> None:  # fmt: skip
    """Rank what to fix or implement next, and what to serve by a kernel instead of a fallback.

    Steps have the cells that they explain, the calls of recorded models that need them, and the bytes that the fallback
    copies in these calls. RUN is by default the latest run. --backend takes the routes of an installed backend: in
    place of those that are stored in RUN, or alone without RUN.
    """
    with mistakes(OptionError):
        order = Order(options.one_of("--by", "order", by, [o.value for o in Order]))
    given = recordings(model, recorded)
    known = _known(run, backend, results)
    taken = file.load_all() if given is None else given
    found = next_steps.steps(known.observations, known.limits, Models(taken, known.routes, file.below()), order)
    if given is not None:
        found = [step for step in found if step.calls or step.action is next_steps.Action.PRIMITIVE]
    lines = _records(known, taken, found) if as_json else _lines(known, taken, found, order, most)
    click.echo("\n".join(lines))


def _lines(
    known: _Known, taken: Sequence[Recording], found: Sequence[next_steps.Step], order: Order, most: int
) -> Iterator[str]:
    yield from known.notes
    models = ", ".join(f"{r.name} {r.count}" for r in taken)
    yield f"{known.name}: {counted(len(found), 'step')} by {order}: {order.meaning}"
    yield f"calls of recorded models: {models or 'none'}"
    yield from next_text.table(found[:most], known.backend)
    if len(found) > most:
        yield f"... and {len(found) - most} more; --most {len(found)} lists them"
    if waiting := next_steps.waiting(known.observations):
        yield f"{counted(waiting, 'cell')} of composites could not run; most wait for operators to implement"


def _records(known: _Known, taken: Sequence[Recording], found: Sequence[next_steps.Step]) -> list[str]:
    facts = {
        "of": known.name, "backend": known.backend, "models": {r.name: r.count for r in taken},
        "waiting": next_steps.waiting(known.observations), "notes": list(known.notes),
        "steps": [step.to_json() for step in found],
    }  # fmt: skip
    return [json.dumps(facts, indent=1)]


def _known(run: str, backend: str, results: Path) -> _Known:
    """Return the facts about the named run, with the routes of the named backend, or about one of them alone.

    If neither is named, it is the latest run, or without a closed run the only installed backend. Raises Mistake.
    """
    names = runs.names(results)
    if not (names or run or backend) and results != RESULTS:
        raise Mistake(f"no closed run in {results / store.RUNS}/; expected another --results, or a --backend")
    live = _live(backend) if backend or not (run or names) else None
    if live and not run:
        return live
    with mistakes(store.StoreError, OSError):
        path = store.find(results, run or names[-1])
        read = store.read(path)
        summary = store.read_summary(path if path.is_dir() else path.parent)
    manifest = read.manifest
    routes: Mapping[str, str] = live.routes if live else summary.get("routes") or {}
    note = f"{manifest.run} has no routes of the overloads that models call; --backend takes those of a backend here"
    return _Known(
        manifest.series, manifest.backend_for_commands, routes, read.observations, summary.get("limits", ()),
        () if routes else (note,),
    )  # fmt: skip


def _live(backend: str) -> _Known:
    """Return the routes of an installed backend, by default of the only installed backend. Raises Mistake."""
    from conformance import backends
    from conformance.inventory import inventory

    try:
        found = backends.find(backend or backends.default())
    except backends.BackendNotFound as e:
        raise Mistake(str(e) if backend else f"there is no closed run, and: {e}") from e
    note = "no run: cells and failing kernels are unknown" + ("" if backend else "; there is no closed run")
    routes = {o.name: o.route.value for o in inventory(found.device)}
    return _Known(found.asked, found.asked, routes, notes=(note,))
