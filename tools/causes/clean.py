"""The outcome of a cell with all faults asleep, and the faults that operators ask for in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.vocabulary import CellId

FILE = "clean.jsonl"  # in the directory of the measurement

Question = tuple[str, str]  # (fault, the innermost operator that runs; "" outside of all)


@dataclass(frozen=True, slots=True)
class Clean:
    """One cell without a fault. A cell whose child died has the status "", and is not measured."""

    cell: CellId
    route: str
    status: str
    asked: frozenset[Question]

    @property
    def faults(self) -> frozenset[str]:
        """The faults that can change the cell: those that code asks for while it runs."""
        return frozenset(fault for fault, _ in self.asked)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return {
            "cell": self.cell.fields(), "route": self.route, "status": self.status, "asked": sorted(self.asked),
        }  # fmt: skip

    @staticmethod
    def from_json(d: dict[str, Any]) -> Clean:
        """Return the cell from a dict of :meth:`to_json`."""
        asked = frozenset((fault, operator) for fault, operator in d["asked"])
        return Clean(CellId(*d["cell"]), d["route"], d["status"], asked)


def load(file: Path) -> dict[CellId, Clean]:
    """Return the cells of a file. An incomplete last line is ignored."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.is_file() else []
    found = [Clean.from_json(json.loads(line)) for line in lines]
    return {one.cell: one for one in found}
