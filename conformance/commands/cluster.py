"""`run`: runs the cells of lanes on a Ray cluster."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from conformance.cluster import accounting, planning, ray_cluster
from conformance.cluster.accounting import LaneResults
from conformance.cluster.model import ClusterError, Order
from conformance.cluster.planning import LanePlan
from conformance.cluster.progress import Row, View
from conformance.cluster.session import Session
from conformance.commands.edge import expected_option, mistakes, results_option
from conformance.commands.jobs import chosen_lanes
from conformance.lanes import jobs, process
from conformance.lanes.jobs import Job, JobError
from conformance.lanes.matrix import Lane
from conformance.results.store import StoreError, runs
from conformance.support.signals import interrupt_once
from conformance.support.toml_table import TomlError


@click.command("run")
@click.option(
    "--cluster", required=True, metavar="ADDRESS", help="ray://HOST:PORT, HOST:PORT, or local: on this machine."
)
@click.option("--lanes", default="", metavar="A,B", help="Only these lanes (names or patterns), also on demand.")
@click.option("--torch", default="", metavar="A,B", help="Only lanes of these torch versions.")
@click.option("--minutes", type=float, default=10.0, show_default=True, help="The longest duration of a shard.")
@click.option("--shards", type=click.IntRange(min=1), metavar="N", help="Shards of each lane, in place of --minutes.")
@click.option("--resume", is_flag=True, help="Continue the last cluster run: shards that ended do not run again.")
@click.option("--reuse", is_flag=True, help="Take the environments that exist on a node as they are.")
@results_option
@expected_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST ARGUMENTS]")
def run_(**options: Any) -> None:
    """Run the cells of lanes as tasks of a Ray cluster, and merge the shards of each lane.

    Each node needs the checkout at the path of the current directory, this package with the extra `cluster`, and nox.
    The exit code is that of the first lane that does not end with 0, or 2 if a lane was interrupted.
    """
    asked = _Request(**options)
    with mistakes(TomlError, JobError, StoreError, LookupError, ClusterError, OSError):
        planning.check_arguments(asked.arguments)
        lanes = _lanes(asked)
        found = _jobs(asked, lanes)
        plans = [_plan(asked, order, found) for order, _, _ in lanes]
        code = _run(asked, [order for order, _, _ in lanes], plans)
    sys.exit(code)


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of the command."""

    cluster: str
    lanes: str
    torch: str
    minutes: float
    shards: int | None
    resume: bool
    reuse: bool
    results: Path
    expected: Path | None
    arguments: tuple[str, ...]


def _lanes(asked: _Request) -> list[tuple[Order, Lane, str]]:
    """Return, for each chosen lane, the order that lists its cells, the lane, and its session."""
    root, token = Path.cwd(), secrets.token_hex(4)
    orders = []
    for lane, session in chosen_lanes(asked.lanes, asked.torch):
        environment = process.find(root, lane.name)[1]
        order = planning.order_of(lane, environment, str(root), token, asked.arguments, reuse=asked.reuse)
        orders.append((order, lane, session))
    return orders


def _jobs(asked: _Request, lanes: Sequence[tuple[Order, Lane, str]]) -> list[Job]:
    """Return the shards of all lanes: the number of --shards, or as many as the measured durations require."""
    chosen = [(lane, session) for _, lane, session in lanes]
    if asked.shards is not None:
        return jobs.split(chosen, asked.shards)
    workers = {lane.name: lane.build.resources.cpus for lane, _ in chosen}
    return jobs.plan(chosen, runs.seconds(asked.results, workers), asked.minutes, most=None)


def _plan(asked: _Request, listing: Order, found: Sequence[Job]) -> LanePlan:
    by = runs.measured(asked.results, listing.lane)
    ended = planning.left(accounting.unmerged(asked.results), listing) if asked.resume else []
    return planning.plan(listing, found, by.name if by else "", ended)


def _run(asked: _Request, listings: Sequence[Order], plans: Sequence[LanePlan]) -> int:
    interrupt_once()
    with closing(ray_cluster.RayCluster(asked.cluster)) as cluster:
        for order in listings:
            if lacking := cluster.lacking(order.lane, order.resources):
                raise ClusterError(lacking)
        rows = [
            Row(plan.lane, plan.shards, len(plan.ended), seen={c.name: c.manifest.collected for c in plan.ended})
            for plan in plans
        ]
        lanes = [LaneResults(plan, asked.results, asked.expected) for plan in plans]
        with View(Console(), rows) as view:
            return Session(cluster, lanes, view, rows).run(listings, _durations(asked.results, plans))


def _durations(results: Path, plans: Sequence[LanePlan]) -> Mapping[str, Mapping[str, bytes]]:
    """Return the files of the runs that split the cells, by name. Raises StoreError."""
    wanted = {order.split_by for plan in plans for order in plan.orders if order.split_by}
    return {name: runs.files(runs.find(results, name).directory) for name in wanted}
