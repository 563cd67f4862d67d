"""The measurement of causes as the tables of the docs: (head, rows) of Markdown cells. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.support.wording import some
from tools.causes.outcome import RIGHT, WRONG
from tools.causes.reasons import REASONS

Table = tuple[list[str], list[list[str]]]
_SHOWN = 4  # operators of a fault
NONE = "-"


def totals(made: Mapping[str, Any]) -> Table:
    """Return one row: the numbers of right and wrong first causes, and of faults without a failing cell."""
    failed = made["right"] + made["wrong"]
    share = f"{100 * made['right'] / failed:.1f} %" if failed else NONE
    row = [made["faults"], f"{made['right']} of {failed} ({share})", made["wrong"], made["unseen"], made["cpu_s"]]
    head = ["faults", "first cause is right, of those that make a cell fail", "wrong", "no cell fails", "CPU s"]
    return head, [[str(value) for value in row]]


def faults(made: Mapping[str, Any]) -> Table:
    """Return a row for each fault: where it lies, the first cause, and the number of cells that it explains."""
    return ["fault", "lies in", "first cause", "explains", "verdict"], [
        [f"`{fault}`", _operators(row["lies_in"]), *_first(row), row["verdict"]]
        for fault, row in made["detail"].items()
    ]


def misses(made: Mapping[str, Any]) -> Table:
    """Return a row for each reason why the first cause of faults is not right: the wrong causes first."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fault, row in made["detail"].items():
        if row["verdict"] != RIGHT:
            found[row["verdict"], REASONS.get(fault) or _unseen(row)].append(f"`{fault}`")
    rows = sorted(found.items(), key=lambda item: item[0][0] != WRONG)
    return ["faults", "verdict", "why"], [[", ".join(faults), verdict, why] for (verdict, why), faults in rows]


def _unseen(row: Mapping[str, Any]) -> str:
    """Return why no cell fails, from the measurement."""
    if row["gate"]:
        return "the bring-up gate finds it"
    return "no sample of the cells that were tried shows it" if row["asking"] else "no cell that was tried asks for it"


def _operators(names: Sequence[str]) -> str:
    return some([f"`{name}`" for name in names], _SHOWN) or NONE


def _first(row: Mapping[str, Any]) -> list[str]:
    if not row["causes"]:
        return [NONE, NONE]
    first = row["causes"][0]
    return [f"`{first['kernel']}`", f"{first['cells']} of {row['failing']} failing cells"]
