"""The gathered data as text for a terminal: lanes, changes, failing cells, coverage, kill-rate, flaky cells."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from conformance.report import failures, model
from conformance.report.gather import Found, LaneData
from conformance.results.diff import Change
from conformance.vocabulary import Status

_SHOWN = 20
_WIDE = 135  # columns that a complete row of a lane needs
_STYLES = {
    Status.PASS: "cyan", Status.FAIL: "bold red", Status.ERROR: "magenta", Status.CRASH: "bold magenta",
    Status.TIMEOUT: "yellow", Status.UNSUPPORTED: "dim", Status.NOT_REACHED: "dim",
}  # fmt: skip
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control characters, formats such as a change of direction, separators


def show(found: Found, console: Console) -> None:
    """Print the report. Texts of the results are not taken for markup, and their control characters are escaped."""
    for part in (
        _lanes(found, console.width),
        _changes(found),
        _failing(found),
        _map(found),
        _coverage(found),
        _kill_rate(found),
    ):
        if part is not None:
            console.print(part, "")
    flaky = _flaky(found)
    if flaky is not None:
        console.print(flaky, "")


def plain(text: object, style: str = "") -> Text:
    """Return text without markup, in which invisible characters are escaped."""
    return Text("".join(c if _seen(c) else _escape(c) for c in str(text)), style)


def _seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode()


def _table(title: str, *columns: str) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        name = column.removeprefix(">")
        short = name == "first"  # a message, cut to what a line holds
        justify: Literal["right", "left"] = "right" if name != column else "left"
        table.add_column(
            name, justify=justify, overflow="ellipsis" if short else "fold", no_wrap=short or justify == "right",
            ratio=1 if short else None,
        )  # fmt: skip
        table.expand |= short  # the column gets the rest of the line
    return table


def _lanes(found: Found, width: int) -> RenderableType:
    """Return a row for each lane. In a narrow terminal, the start and the duration of the run are left out."""
    wide = width >= _WIDE
    shown = [s for s in Status if any(lane.run.by_status.get(s) for lane in found.lanes)]
    statuses = [f">{status}" for status in shown]
    began, took = (["run"], [">wall"]) if wide else ([], [])
    table = _table("Lanes", "lane", *began, ">cells", *statuses, ">known", ">coverage", *took, "account")
    for lane in found.lanes:
        facts = model.lane_facts(lane)
        counts = [plain(n if (n := lane.run.by_status.get(s, 0)) else "·", _STYLES[s] if n else "dim") for s in shown]
        account = plain(facts["account"] or "balances", "bold red" if facts["account"] else "")
        known = plain(facts["known"] or "·", "dim")
        covered = _share(facts["coverage"])
        at, seconds = ([plain(text)] if wide else [] for text in (facts["began"], _seconds(facts["wall_s"])))
        table.add_row(plain(lane.name), *at, plain(facts["collected"]), *counts, known, covered, *seconds, account)
    return table


def _share(coverage: dict[str, int] | None) -> Text:
    if not coverage or not coverage["total"]:
        return plain("-", "dim")
    return plain(f"{100 * coverage['compared'] / coverage['total']:.1f} %")


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _changes(found: Found) -> RenderableType:
    """Return the changes. Cells of an overload with the same change share a row, and the gravest class comes first."""
    rows: dict[tuple[Change, str, str], list[tuple[str, str]]] = defaultdict(list)
    for lane in found.lanes:
        for d in lane.changes:
            if d.change is not Change.NOT_COMPARED:
                kinds = " → ".join(o.kind if o else "absent" for o in (d.pair.before, d.pair.after))
                rows[d.change, d.pair.cell.overload, kinds].append((d.pair.cell.name, lane.name))
    compared = [lane for lane in found.lanes if lane.before]
    if not rows:
        return plain(f"New tonight: {'nothing changed' if compared else 'no earlier run to compare with'}", "bold")
    order = list(Change)
    table = _table("New tonight", "change", ">cells", "overload", "from → to", "lane")
    ordered = sorted(rows.items(), key=lambda item: (order.index(item[0][0]), -len(item[1]), item[0][1:]))
    for (change, overload, kinds), cells in ordered[:_SHOWN]:
        style = "bold red" if change is Change.NEWLY_FAILING else ""
        names, lanes = ({part[n] for part in cells} for n in (0, 1))
        what = overload if len(names) > 1 else cells[0][0]
        where = f"{len(lanes)} lanes" if len(lanes) > 1 else cells[0][1]
        table.add_row(plain(change, style), str(len(cells)), plain(what), plain(kinds), plain(where, "dim"))
    return _with_rest(table, len(ordered))


def _failing(found: Found) -> RenderableType:
    """Return the overloads with most failing cells, with the first message of each."""
    groups: dict[tuple[str, str], list[tuple[LaneData, str, str]]] = defaultdict(list)
    for lane in found.lanes:
        for o in lane.failing:
            why = failures.excerpt(o)
            groups[o.cell.family, o.cell.overload].append((lane, o.kind, why))
    if not groups:
        return plain("Failing: nothing", "bold")
    table = _table("Failing", ">cells", "overload", "how", "lanes", "first")
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for (_, overload), cells in ordered[:_SHOWN]:
        kinds = ", ".join(kind for kind, _ in Counter(kind for _, kind, _ in cells).most_common(3))
        lanes = len({lane.name for lane, _, _ in cells})
        table.add_row(str(len(cells)), plain(overload), plain(kinds, "red"), str(lanes), plain(cells[0][2], "dim"))
    return _with_rest(table, len(ordered))


def _map(found: Found) -> RenderableType | None:
    """Return the number of failing cells by family and lane. Families without failing cells are left out."""
    counts = [Counter(o.cell.family for o in lane.failing) for lane in found.lanes]
    families = sorted(set().union(*counts))
    if not families:
        return None
    table = _table("Failing cells by family and lane", "family", *(f">{n + 1}" for n in range(len(counts))))
    for family in families:
        table.add_row(plain(family), *(plain(c[family] or "·", "red" if c[family] else "dim") for c in counts))
    names = Text("\n").join(Text.assemble(f"  {n + 1} ", plain(lane.name, "dim")) for n, lane in enumerate(found.lanes))
    return Group(table, names)


def _coverage(found: Found) -> RenderableType | None:
    told = [(lane, c) for lane in found.lanes if (c := lane.summary.get("coverage"))]
    if not told:
        return None
    routes = sorted({route for _, c in told for route in c["by_route"]})
    table = _table("Coverage: overloads compared, by route", "lane", ">all", *(f">{route}" for route in routes))
    for lane, c in told:
        table.add_row(plain(lane.name), *_routes(c, routes))
    return table


def _routes(coverage: dict[str, dict[str, dict[str, int]]], routes: Sequence[str]) -> Iterator[Text]:
    for part in (coverage, *(coverage["by_route"].get(route) for route in routes)):
        yield plain(f"{part['compared']}/{part['total']}") if part else plain("-", "dim")


def _kill_rate(found: Found) -> RenderableType | None:
    k = found.kill_rate
    if not k:
        return None
    text = Text.assemble(("Kill rate", "bold"), f"  {k.get('killed')} of {k['faults']} planted faults found")
    alarms = k.get("false_alarms")
    return Text.assemble(text, f"; {alarms} false alarms" if alarms is not None else "")


def _flaky(found: Found) -> RenderableType | None:
    rows = [(lane, cell, why) for lane in found.lanes for cell, why in lane.flaky.items()]
    if not rows:
        return None
    table = _table("Flaky", "cell", "why", "lane")
    for lane, cell, why in rows[:_SHOWN]:
        table.add_row(plain(cell.name), plain(why), plain(lane.name, "dim"))
    return _with_rest(table, len(rows))


def _with_rest(table: Table, rows: int) -> RenderableType:
    return Group(table, Text(f"... and {rows - _SHOWN} more", "dim")) if rows > _SHOWN else table
