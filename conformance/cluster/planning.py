"""The orders of a cluster run: lanes, their shards by measured durations, and what an interrupted run left. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from conformance.cluster.model import ClusterError, Order
from conformance.cluster.node import BEFORE_THE_USERS
from conformance.lanes.jobs import Job
from conformance.lanes.matrix import Lane
from conformance.results.shards import Shard
from conformance.results.store import Closed

# The options that a cluster run sets itself, or that make no sense in several processes on several machines.
_OURS = (
    "--shard", "--shard-by", "--results", "--resume", "--backend", "--lane-name", "--lane-tier", "--jobs", "--case",
    "-n", "--numprocesses", "--expected", "--collect-only", "--co",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LanePlan:
    """The orders of one lane, and the shards of an interrupted run that need no order."""

    lane: str
    orders: tuple[Order, ...]
    ended: tuple[Closed, ...] = field(default=())

    @property
    def shards(self) -> int:
        return len(self.orders) + len(self.ended)


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise ClusterError for an argument of pytest that a cluster run sets itself."""
    for word in arguments:
        name = word.partition("=")[0]
        if name in _OURS or name.startswith("-n") and name[2:].isdigit():
            raise ClusterError(f"{name}: cannot be given to `conformance run`, which sets it for each shard")


def order_of(lane: Lane, environment: str, root: str, token: str, arguments: Sequence[str], *, reuse: bool) -> Order:
    """Return the order that lists the cells of a lane."""
    return Order(
        lane.name, lane.backend, lane.torch.tier, environment, "", lane.build.resources, root, token, reuse,
        arguments=tuple(arguments),
    )  # fmt: skip


def plan(listing: Order, jobs: Sequence[Job], split_by: str, ended: Sequence[Closed] = ()) -> LanePlan:
    """Return the orders of a lane's jobs.

    ``split_by``: the closed run whose durations split the cells, "" for none. ``ended``: the shards that an interrupted
    run left, see :func:`left`. The orders are then for the missing shards of the same split.
    """
    shards = [job.shard for job in jobs if job.lane == listing.lane]
    if ended:
        first = ended[0].manifest
        count, split_by = Shard.parse(first.shard).count, first.split_by
        have = {closed.manifest.shard for closed in ended}
        shards = [str(shard) for i in range(1, count + 1) if str(shard := Shard(i, count)) not in have]
    orders = (replace(listing, shard=shard, split_by=split_by) for shard in shards)
    return LanePlan(listing.lane, tuple(orders), tuple(ended))


def left(closed: Sequence[Closed], listing: Order) -> list[Closed]:
    """Return the shards of the last cluster run of a lane with these arguments; of equal shards, the newest.

    ``closed``: shards that are not merged, the oldest first.
    """
    alike = [c for c in closed if c.manifest.lane == listing.lane and users(c.manifest.arguments) == listing.arguments]
    if not alike:
        return []
    last = alike[-1].manifest
    same = [c for c in alike if _split(c) == _split(alike[-1]) and c.manifest.backend_commit == last.backend_commit]
    return list({c.manifest.shard: c for c in same}.values())


def users(arguments: Sequence[str]) -> tuple[str, ...] | None:
    """Return the user's part of the arguments of pytest, None if a cluster run did not start it."""
    words = list(arguments)
    if words[:2] != ["--pyargs", "conformance"] or BEFORE_THE_USERS not in words:
        return None
    return tuple(words[words.index(BEFORE_THE_USERS) + 1 :])


def _split(closed: Closed) -> tuple[int, str]:
    return Shard.parse(closed.manifest.shard).count, closed.manifest.split_by
