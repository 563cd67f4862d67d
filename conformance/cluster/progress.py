"""The progress of all lanes in one view: a table on a terminal, else a line for each event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.live import Live
from rich.table import Table

from conformance.cluster.model import Ended, News, Order, State

V = TypeVar("V", bound="View")


@dataclass
class Row:
    """The counts of a lane while it runs."""

    lane: str
    shards: int
    ended: int = 0
    lost: int = 0
    cells: int | None = None  # of the lane, None until a task has listed them
    seen: dict[str, int] = field(default_factory=dict)  # records by shard
    nodes: dict[str, str] = field(default_factory=dict)  # of the running shards

    def news(self, news: News, header: bool) -> None:
        """Count the records of a shard. A new attempt starts at 0. ``header``: whether the first is the manifest."""
        if not news.lines:
            self.seen[news.key] = 0
            self.nodes[news.key] = news.node
        self.seen[news.key] = self.seen.get(news.key, 0) + len(news.lines) - header

    def over(self, key: str, state: State) -> None:
        """Count a shard that ended."""
        self.nodes.pop(key, None)
        done = state in (State.ENDED, State.EMPTY)
        self.ended += done
        self.lost += not done

    def words(self) -> list[str]:
        """Return the columns: lane, shards, cells, nodes."""
        lost = f", {self.lost} lost" if self.lost else ""
        cells = "?" if self.cells is None else str(self.cells)
        nodes = ", ".join(sorted(set(self.nodes.values()))) or "-"
        return [self.lane, f"{self.ended}/{self.shards}{lost}", f"{sum(self.seen.values())}/{cells}", nodes]


class View:
    """The view. Use it as a context manager."""

    def __init__(self, console: Console, rows: Sequence[Row]) -> None:
        self._console, self._rows = console, rows
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self: V) -> V:  # noqa: PYI019  # typing has Self from Python 3.11 on
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def update(self) -> None:
        """Show the rows as they are now."""
        if self._live:
            self._live.update(table(self._rows), refresh=True)

    def news(self, news: News) -> None:
        """Print a line for an attempt that begins, unless it is the first."""
        if not news.lines and news.attempt > 1:
            self.tell(f"{news.key}: attempt {news.attempt} on {news.node}; the process of the one before died")

    def over(self, order: Order, ended: Ended, row: Row) -> None:
        """Print a line for the end of a shard; where the table is shown, only for a failure."""
        why = f": {ended.reason}" if ended.state is State.FAILED else ""
        if not self._live or why:
            self.tell(f"{order.key} {ended.state.value}{why}; {row.words()[1]} shards, {row.words()[2]} cells")

    def tell(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def table(rows: Iterable[Row]) -> Table:
    """Return the rows as a table."""
    found = Table()
    for name in ("lane", "shards", "cells", "nodes"):
        found.add_column(name, overflow="fold")
    for row in rows:
        found.add_row(*row.words())
    return found
