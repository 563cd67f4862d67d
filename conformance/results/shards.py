"""Shards: the parts of a selection of cells, which take about equally long. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.vocabulary import CellId

_SHARD = re.compile(r"(\d{1,4})/(\d{1,4})")


class ShardError(ValueError):
    """An invalid shard. The message is one line."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``index``-th of ``count`` parts, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @staticmethod
    def parse(text: str) -> Shard:
        """Parse ``2/4``. Raises ShardError."""
        found = _SHARD.fullmatch(text)
        shard = Shard(int(found[1]), int(found[2])) if found else None
        if shard is None or not 1 <= shard.index <= shard.count:
            raise ShardError(f"{text!r} is not a shard; expected I/N with 1 <= I <= N, for example 2/4")
        return shard


@dataclass(frozen=True, slots=True)
class Split:
    """The split that a shard is a part of. It is known after collection and stored in the summary, for the merge."""

    shard: str
    of: int  # number of cells of all shards
    cells: str  # a hash of the ids of all cells

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def weigh(
    cells: Sequence[CellId], measured: Mapping[str, tuple[int, int]], count: Callable[[CellId], int]
) -> list[int]:
    """Return the expected duration of each cell, in nanoseconds.

    ``measured``: nanoseconds and number of cases of cells by id, from an earlier run. For a cell that is not in it, the
    duration is its number of cases, from ``count``, times the average duration of a case. If nothing was measured, the
    durations are the numbers of cases.
    """
    spent, counted = (sum(column) for column in zip((0, 0), *measured.values()))
    a_case = max(1, spent // counted) if counted else 1
    found = ((cell, measured.get(str(cell))) for cell in cells)
    return [max(1, known[0] if known else a_case * count(cell)) for cell, known in found]


def part(cells: Collection[CellId], weights: Sequence[int], shard: Shard) -> set[CellId]:
    """Return the cells of one shard. Every cell is in exactly one shard, and the order of ``cells`` does not matter.

    The cells are sorted by name, because the cells of one overload share data, and the sequence is cut by duration. No
    shard exceeds its share by more than the longest cell.
    """
    row = sorted(zip(map(str, cells), cells, weights))
    total, before = sum(weights), 0
    taken = set()
    for _, cell, weight in row:
        # The middle of the cell's time decides. Integers give the same cuts on every machine.
        if (2 * before + weight) * shard.count // (2 * total) == shard.index - 1:
            taken.add(cell)
        before += weight
    return taken
