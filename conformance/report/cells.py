"""The cells of all lanes as columns: each text once, and per cell a character for dtype, layout, status with route.

A character stands for a number: its code minus the code of ``0``. A browser reads strings fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.layouts import LAYOUTS
from conformance.results.store.views import Row
from conformance.vocabulary import DTYPES, CellId, Route, Status

STATUSES = tuple(s.value for s in Status)
Key = tuple[str, str, str, str]  # family, overload, dtype, layout
_FIRST = ord("0")
_MOST = 0xA000  # keeps the codes below the surrogates, which are no characters
_OTHER = "(more reasons than a report keeps apart)"


class Words:
    """Texts with numbers, in the order of their first use."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.texts = list(known)
        self._numbers = {text: n for n, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            text = text if len(self.texts) < _MOST else _OTHER
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of all lanes, in order of family, overload, dtype, layout."""

    columns: Mapping[str, Any]  # JSON-able
    index: Mapping[Key, int]

    def of(self, cell: CellId) -> int | None:
        """Return the cell's number, None if no lane has the cell."""
        return self.index.get(cell.fields())

    def reference(self, cell: CellId) -> int | str:
        """Return the cell's number, or its id if no lane has it."""
        number = self.of(cell)
        return str(cell) if number is None else number


def table(lanes: Iterable[Iterable[Key]]) -> Table:
    """Return the table of the cells of all lanes."""
    dtypes, layouts = Words(DTYPES), Words(LAYOUTS)
    everything: set[Key] = set()
    for of_lane in lanes:
        everything.update(of_lane)
    ranked = sorted((*c[:2], dtypes.number(c[2]), layouts.number(c[3]), c) for c in sorted(everything))
    families, ops, counts = Words(), [], []
    last = None
    for family, overload, *_ in ranked:
        if (family, overload) != last:
            last = (family, overload)
            ops.append([families.number(family), overload])
            counts.append(0)
        counts[-1] += 1
    columns = {
        "families": families.texts, "ops": ops, "counts": counts, "dtypes": dtypes.texts, "layouts": layouts.texts,
        "dtype": text(c[2] for c in ranked), "layout": text(c[3] for c in ranked),
    }  # fmt: skip
    return Table(columns, {c[4]: n for n, c in enumerate(ranked)})


def lane(rows: Iterable[Row], found: Table) -> dict[str, Any]:
    """Return a lane's columns for the cells of the table: codes and reasons.

    The code of a cell is 0 if the lane does not have the cell, else 1 + status x number of routes + route.
    """
    routes, reasons = Words([*(r.value for r in Route), ""]), Words([""])
    codes, why = [0] * len(found.index), [0] * len(found.index)
    numbered = [(found.index[row[:4]], row) for row in rows]
    for _, row in numbered:
        routes.number(row.route)
    width = len(routes.texts)
    for n, row in numbered:
        codes[n] = 1 + STATUSES.index(row.status) * width + routes.number(row.route)
        why[n] = reasons.number(row.reason)
    there = [n for n, reason in enumerate(why) if reason]
    return {
        "routes": routes.texts, "codes": text(codes), "reasons": reasons.texts,
        "why": text(why[n] for n in there), "whose": _gaps(there),
    }  # fmt: skip


def _gaps(numbers: Sequence[int]) -> list[int]:
    """Return ascending numbers as the distances between neighbours, which are short to write."""
    return [b - a for a, b in zip([0, *numbers], numbers)]


def text(numbers: Iterable[int]) -> str:
    """Return a string with a character for each number."""
    return "".join(map(chr, (_FIRST + n for n in numbers)))
