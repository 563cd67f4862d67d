"""Cells as columns of characters, compared with the rows that they were made from."""

from __future__ import annotations

from typing import Any

from conformance.report import cells
from conformance.results.store.views import Row
from conformance.vocabulary import CellId


def row(overload: str, dtype: str, layout: str, status: str = "pass", **given: Any) -> Row:
    return Row(**{
        "family": "masking", "overload": overload, "dtype": dtype, "layout": layout, "route": "native",
        "status": status, "reason": "", "wall_ns": 1, **given,
    })  # fmt: skip


def read(table: cells.Table, lane: dict[str, Any]) -> list[Row]:
    """Read the columns as the page does."""
    t, rows, n = table.columns, [], 0
    why = dict.fromkeys(range(len(t["dtype"])), "")
    at = 0
    for gap, code in zip(lane["whose"], lane["why"]):
        at += gap
        why[at] = lane["reasons"][ord(code) - 48]
    for (family, overload), count in zip(t["ops"], t["counts"]):
        for _ in range(count):
            code = ord(lane["codes"][n]) - 48 - 1
            if code >= 0:
                status, route = divmod(code, len(lane["routes"]))
                rows.append(Row(
                    t["families"][family], overload, t["dtypes"][ord(t["dtype"][n]) - 48],
                    t["layouts"][ord(t["layout"][n]) - 48], lane["routes"][route], cells.STATUSES[status], why[n], 1,
                ))  # fmt: skip
            n += 1
    return rows


def test_the_columns_of_each_lane_say_what_its_rows_say() -> None:
    one = [
        row("a", "float16", "contiguous"),
        row("b", "int8", "aliased", "unsupported", reason="no kernel"),
        row("b", "int8", "mixed", "unsupported", reason="no kernel"),
        row("b", "<dtype>", "odd", "crash", route="<route>"),
        row("c", "int8", "mixed", "not_reached", reason="the run ended before it", route=""),
    ]
    two = [row("b", "bool", "mixed", "fail"), row("b", "int8", "aliased", family="other")]
    table = cells.table([[r[:4] for r in rows] for rows in (one, two)])
    assert sorted(read(table, cells.lane(one, table))) == sorted(one)
    assert sorted(read(table, cells.lane(two, table))) == sorted(two)


def test_cells_lie_in_the_order_of_the_vocabulary() -> None:
    rows = [row("a", "int8", "mixed"), row("a", "float16", "transposed"), row("a", "float16", "contiguous")]
    table = cells.table([[r[:4] for r in rows]])
    assert [table.of(CellId(*r[:4])) for r in rows] == [2, 1, 0]
    assert table.of(CellId("masking", "gone", "int8", "mixed")) is None


def test_more_reasons_than_there_are_characters_are_put_together() -> None:
    words = cells.Words()
    numbers = [words.number(f"reason {n}") for n in range(50_000)]
    assert max(numbers) < 0xD000
    assert cells.text(numbers).encode()
