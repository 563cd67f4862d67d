"""The order in which cells are tried: many ops, dtypes and layouts come early. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import TypeVar

from conformance.vocabulary import CellId

FIRST_DTYPE = "float32"
T = TypeVar("T")


def varied(cells: Iterable[CellId]) -> list[CellId]:
    """Return the cells of one overload: float32 and contiguous first, then alternately other dtypes and layouts."""
    found = list(cells)
    dtypes = sorted({c.dtype for c in found}, key=lambda d: (d != FIRST_DTYPE, d))
    layouts = list(dict.fromkeys(c.layout for c in found))

    def far(cell: CellId) -> tuple[int, int]:
        dtype, layout = dtypes.index(cell.dtype), layouts.index(cell.layout)
        return dtype + layout, dtype

    return sorted(found, key=far)


def one_at_a_time(cells: Iterable[CellId]) -> list[CellId]:
    """Return cells of one overload: for each dtype its first layout, and for each layout its first dtype."""
    by_dtype: dict[str, CellId] = {}
    by_layout: dict[str, CellId] = {}
    ordered = varied(cells)
    for cell in ordered:
        by_dtype.setdefault(cell.dtype, cell)
        by_layout.setdefault(cell.layout, cell)
    chosen = {*by_dtype.values(), *by_layout.values()}
    return [cell for cell in ordered if cell in chosen]


def turns(rows: Iterable[Sequence[T]]) -> list[T]:
    """Return the first element of each row, then the second of each, and so on."""
    return [each for each in chain.from_iterable(zip_longest(*rows)) if each is not None]
