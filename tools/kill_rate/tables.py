"""A kill-rate summary as the tables of the docs: (head, rows) of Markdown cells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tools.kill_rate.summary import tried_by

Table = tuple[list[str], list[list[str]]]
NONE = "-"


def totals(made: Mapping[str, Any]) -> Table:
    """Return a row for the whole suite, each lane and each peer."""
    rows = [["the suite, all lanes", f"{made['killed']} of {made['faults']}", str(made["false_alarms"]), ""]]
    for name, t in (*made["lanes"].items(), *made["peer_totals"].items()):
        kind = "lane" if name in made["lanes"] else "peer"
        killed = f"{t['killed']} of {len(tried_by(made, name))}"
        rows.append([f"{kind} `{name}`", killed, str(t["false_alarms"]), str(t["cpu_s"])])
    return ["who looks", "faults killed", "false alarms", "CPU s"], rows


def peers(made: Mapping[str, Any]) -> Table:
    """Return a row for each peer: of the faults that it tried, those that it, the suite, or only one finds."""
    rows = []
    for peer in made["peers"]:
        tried = tried_by(made, peer)
        its = {fault for fault in tried if _found(made["detail"][fault], [peer])}
        ours = {fault for fault in tried if _found(made["detail"][fault], made["lanes"])}
        alone = ", ".join(f"`{fault}`" for fault in tried if fault in its - ours) or NONE
        rows.append([f"`{peer}`", *map(str, (len(tried), len(its), len(ours), len(ours - its))), alone])
    return ["peer", "faults tried", "it finds", "the suite finds", "the suite alone", "the peer alone"], rows


def classes(made: Mapping[str, Any], kinds: Mapping[str, str]) -> Table:
    """Return a row for each class: the numbers of all faults, of measured faults, and of those that each side kills.

    ``kinds``: the class of each fault.
    """
    rows = []
    for kind in dict.fromkeys(kinds.values()):
        of = [by for fault, by in made["detail"].items() if kinds[fault] == kind]
        suite = sum(_found(by, made["lanes"]) for by in of)
        every = sum(k == kind for k in kinds.values())
        rows.append([kind, str(every), str(len(of)), str(suite), *(_part(of, peer) for peer in made["peers"])])
    return ["class", "faults", "measured", "the suite", *(f"`{peer}`" for peer in made["peers"])], rows


def faults(made: Mapping[str, Any]) -> Table:
    """Return a row for each fault: the check that kills it in each lane and in each peer. Empty where none looked."""
    names = [*made["lanes"], *made["peers"]]
    rows = [
        [f"`{fault}`", *((row[name]["killed_by"] or NONE) if name in row else "" for name in names)]
        for fault, row in made["detail"].items()
    ]
    return ["fault", *(f"`{name}`" for name in names)], rows


def cells(made: Mapping[str, Any]) -> Table:
    """Return a row for each fault: the first lane that kills it, the item, and the number of items and seconds."""
    rows = []
    for fault, by in made["detail"].items():
        name = next((n for n in made["lanes"] if by.get(n, {}).get("killed_by")), "")
        if name:
            hit = by[name]
            rows.append([f"`{fault}`", f"`{name}`", f"`{hit['where']}`", str(hit["tried"]), f"{hit['seconds']:.1f}"])
    return ["fault", "lane", "killed in", "tried", "seconds"], rows


def survivors(made: Mapping[str, Any]) -> Table:
    """Return a row for each fault that no lane kills."""

    def own(test: str | None) -> str:
        return "not tried" if test is None else f"`{test}`" if test else NONE

    rows = [[f"`{s['fault']}`", s["why"], own(s["found_by_own_tests"])] for s in made["survivors"]]
    return ["fault", "why the suite does not see it", "which of the backend's own tests does"], rows


def _found(by: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(by.get(name, {}).get("killed_by") for name in names)


def _part(of: Sequence[Mapping[str, Any]], peer: str) -> str:
    """Return the number of faults that a peer finds, with the number that it tried if not all; "" if it tried none."""
    tried = [by for by in of if peer in by]
    finds = sum(_found(by, [peer]) for by in tried)
    return "" if not tried else str(finds) if len(tried) == len(of) else f"{finds} of {len(tried)}"
