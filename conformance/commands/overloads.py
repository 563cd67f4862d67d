"""`inventory`: lists the overloads of this torch and their routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from conformance.commands.edge import backend_option, format_option, matching, mistakes
from conformance.vocabulary import Route

if TYPE_CHECKING:
    from conformance.inventory import Overload


@click.command("inventory")
@backend_option
@click.option("--route", type=click.Choice([r.value for r in Route]), help="Only overloads with this route.")
@format_option("table", "json")
@click.option(
    "-k", "pattern", default="", metavar="PATTERN", help="Only names that contain or match this shell pattern."
)
def inventory_(backend: str, route: str | None, form: str, pattern: str) -> None:
    """List every aten overload of this torch, with the backend's route."""
    from conformance.explain import inventory_text

    overloads = _overloads(backend)
    found = matching(pattern, [o.name for o in overloads])
    chosen = [o for o in overloads if o.name in found and (route is None or o.route.value == route)]
    click.echo(inventory_text.as_json(chosen) if form == "json" else inventory_text.table(chosen))


def _overloads(backend: str) -> Sequence[Overload]:
    from conformance import backends
    from conformance.inventory import inventory

    with mistakes(backends.BackendNotFound):
        return inventory(backends.find(backend or backends.default()).device)
