"""Shards: the parts of a selection of cells, which take about equally long. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
            raise ShardError(f"{text!r} is not a shard; expected I/N with 1 <= I <= N <= 9999, for example 2/4")
        return shard


@dataclass(frozen=True, slots=True)
class Split:
    """The split that a shard is a part of. It is known after collection and stored in the summary, for the merge."""

    shard: str
    of: int  # number of cells of all shards
    cells: str  # a hash of the ids of all cells

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


#: Microseconds that a cell takes if no run was measured, by layout, "" for scenarios. Rough: only their ratios matter.
TYPICAL = {
    "": 3_600_000, "inductor": 2_600_000, "compiled": 380_000,
    "sizes": 37_000, "sizes_gap": 33_000, "sizes_strided": 33_000, "sizes_channels_last": 33_000,
    "sizes_large": 300_000, "second_device": 32_000, "stream": 25_000, "fake": 22_000,
}  # fmt: skip
_ANOTHER = 3_000


def weigh(cells: Sequence[CellId], measured: Mapping[str, int]) -> list[int]:
    """Return the expected duration of each cell, in nanoseconds.

    ``measured``: nanoseconds of cells by id, from an earlier run. The expected duration of any other cell is the mean
    of the measured cells of its layout. If there are none, it is the :data:`TYPICAL` duration of its layout, times the
    ratio of all measured durations to the typical durations of the measured cells.
    """
    known = [(cell, ns) for cell in cells if (ns := measured.get(str(cell)))]
    by_layout: dict[str, list[int]] = defaultdict(list)
    for cell, ns in known:
        by_layout[cell.layout].append(ns)
    took, expected = sum(ns for _, ns in known), sum(_typical(cell.layout) for cell, _ in known)

    def unmeasured(layout: str) -> int:
        if alike := by_layout.get(layout):
            return sum(alike) // len(alike)
        return _typical(layout) * took // expected if expected else _typical(layout) * 1000

    means = {layout: max(1, unmeasured(layout)) for layout in {cell.layout for cell in cells}}
    return [measured.get(str(cell)) or means[cell.layout] for cell in cells]


def _typical(layout: str) -> int:
    return TYPICAL.get(layout, _ANOTHER)


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
