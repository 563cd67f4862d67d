"""Shards: which cells of a selection are the i-th of n parts that take alike long; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.vocabulary import CellId

_SHARD = re.compile(r"(\d{1,4})/(\d{1,4})")


class ShardError(ValueError):
    """A shard that cannot be; the message is one line."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``index``-th of ``count`` parts, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    @staticmethod
    def parse(text: str) -> Shard:
        """Of ``2/4``. Raises ShardError that says what is expected."""
        found = _SHARD.fullmatch(text)
        shard = Shard(int(found[1]), int(found[2])) if found else None
        if shard is None or not 1 <= shard.index <= shard.count:
            raise ShardError(f"{text!r} is no shard; expected I/N, the I-th of N from 1 on, such as 2/4")
        return shard


@dataclass(frozen=True, slots=True)
class Split:
    """What a shard is a part of: known once the cells are collected, kept in the summary, needed by a merge."""

    shard: str
    of: int  # the cells of all shards together
    cells: str  # a hash of their ids

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def weigh(
    cells: Sequence[CellId], measured: Mapping[str, tuple[int, int]], count: Callable[[CellId], int]
) -> list[int]:
    """What each cell is expected to take, in nanoseconds.

    ``measured``: (nanoseconds, cases) of cells by id, as an earlier run has them. A cell that it lacks is taken to last
    as long as its number of cases, which ``count`` finds, does on average; with nothing measured, the numbers decide.
    """
    spent, counted = (sum(column) for column in zip((0, 0), *measured.values()))
    a_case = max(1, spent // counted) if counted else 1
    found = ((cell, measured.get(str(cell))) for cell in cells)
    return [max(1, known[0] if known else a_case * count(cell)) for cell, known in found]


def part(cells: Collection[CellId], weights: Sequence[int], shard: Shard) -> set[CellId]:
    """The cells of one shard; every cell is in exactly one of them, whatever order the cells are given in.

    The cells stand in order of their names, for those of an overload share what was made for it, and the row is cut
    where its time is: no shard takes longer than its share by more than the longest cell.
    """
    row = sorted(zip(map(str, cells), cells, weights))
    total, before = sum(weights), 0
    taken = set()
    for _, cell, weight in row:
        # The middle of the cell's time says whose it is; whole numbers, so that every machine cuts alike.
        if (2 * before + weight) * shard.count // (2 * total) == shard.index - 1:
            taken.add(cell)
        before += weight
    return taken
