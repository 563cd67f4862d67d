"""A cluster run: the orders of all lanes, their records, and the end of each lane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from conformance.cluster.accounting import NOT_BEGUN, LaneResults
from conformance.cluster.model import Ended, News, Order, State
from conformance.cluster.progress import Row, View
from conformance.lanes.matrix import Resources
from conformance.results.merge import MergeError
from conformance.results.store import StoreError
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError

_EVERY = 0.5  # seconds between two looks
_PATIENCE = 240  # looks that find no node for orders, before these are given up: a node may come back
_GRACE = 150  # looks after an interruption, before the tasks that have not ended are given up


class Cluster(Protocol):
    """A cluster that runs tasks, see :class:`conformance.cluster.ray_cluster.RayCluster`."""

    def lacking(self, lane: str, needed: Resources) -> str: ...
    def submit(self, order: Order, durations: Mapping[str, bytes]) -> None: ...
    def wait(self, seconds: float) -> list[tuple[Order, Ended]]: ...
    def news(self) -> Sequence[News]: ...
    def stop(self) -> None: ...


class Session:
    """A run of lanes on a cluster. Merges the shards of each lane when the last has ended, and prints the result."""

    def __init__(self, cluster: Cluster, lanes: Sequence[LaneResults], view: View, rows: Sequence[Row]) -> None:
        self._cluster, self._view = cluster, view
        self._lanes = {found.plan.lane: found for found in lanes}
        self._rows = {row.lane: row for row in rows}
        self._open: dict[str, Order] = {}  # orders without an end, by key
        self._codes: list[Exit] = []
        self._waited: dict[Resources, int] = {}  # looks that found no node

    def run(self, listings: Sequence[Order], durations: Mapping[str, Mapping[str, bytes]]) -> Exit:
        """Run all orders. Return ``Exit.INTERRUPTED`` if a lane has it, else the first lane's exit code that is not 0.

        ``listings``: the orders that list the lanes' cells. ``durations``: the files of the closed runs that split
        cells, by the run's name.
        """
        try:
            for order in [*listings, *(o for lane in self._lanes.values() for o in lane.plan.orders)]:
                self._open[order.key] = order
                self._cluster.submit(order, durations.get(order.split_by, {}))
            for lane in [*self._lanes]:
                self._settle_if_over(lane)
            while self._open:
                self._look()
                self._give_up_without_node()
        except KeyboardInterrupt:
            self._view.tell("interrupted; running shards close their results")
            self._stop()
        return Exit.INTERRUPTED if Exit.INTERRUPTED in self._codes else next(filter(None, self._codes), Exit.OK)

    def _look(self) -> None:
        """Handle the records that came and the tasks that ended since the last look."""
        ended = self._cluster.wait(_EVERY)
        for news in self._cluster.news():  # all records of the ended tasks are among them
            self._heard(news)
        for order, result in ended:
            self._over(order, result)
        self._view.update()

    def _heard(self, news: News) -> None:
        if news.key not in self._open or not self._open[news.key].shard:
            return
        lane = self._open[news.key].lane
        self._rows[lane].news(news, self._lanes[lane].news(news))
        self._view.news(news)

    def _over(self, order: Order, ended: Ended) -> None:
        if self._open.pop(order.key, None) is None:
            return
        lane, row = self._lanes[order.lane], self._rows[order.lane]
        if not order.shard:
            lane.cells = ended.cells or None
            row.cells = len(ended.cells) or None
        else:
            try:
                lane.over(order.shard, order.key, ended)
            except StoreError as e:
                ended = Ended(State.FAILED, ended.node, str(e))
                lane.over(order.shard, order.key, ended)
            row.over(order.key, ended.state)
            self._view.over(order, ended, row)
        self._settle_if_over(order.lane)

    def _settle_if_over(self, lane: str) -> None:
        if any(order.lane == lane for order in self._open.values()):
            return
        try:
            text, code = self._lanes[lane].settle(NOT_BEGUN)
        except (MergeError, StoreError, TomlError, OSError) as e:
            text, code = f"Error: {lane}: {e}", Exit.INTERRUPTED
        self._view.tell(text)
        self._codes.append(code)

    def _give_up_without_node(self) -> None:
        """End the orders that no node could run in more than ``_PATIENCE`` looks in a row."""
        for needed in {order.resources for order in self._open.values()}:
            orders = [order for order in self._open.values() if order.resources == needed]
            lacking = self._cluster.lacking(orders[0].lane, needed)
            self._waited[needed] = self._waited.get(needed, 0) + 1 if lacking else 0
            if self._waited[needed] > _PATIENCE:
                self._end(orders, lacking)

    def _stop(self) -> None:
        """End the run early. Cells without an outcome count as not reached."""
        try:
            self._cluster.stop()
            looks = 0
            while self._open and looks < _GRACE:
                self._look()
                looks += 1
        except KeyboardInterrupt:
            self._view.tell("interrupted again; the results of running shards end with what came")
        self._end([*self._open.values()], "the run was interrupted")
        self._codes.append(Exit.INTERRUPTED)

    def _end(self, orders: Sequence[Order], reason: str) -> None:
        for order in orders:
            self._over(order, Ended(State.STOPPED, reason=reason))
