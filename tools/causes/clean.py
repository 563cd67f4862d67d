"""The cells with all faults asleep: how each ends, and which operators ask for which faults in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.running.cell_runner import CellRunner
from conformance.running.child import Child
from conformance.running.progress import Progress
from conformance.vocabulary import CellId, Observation, Status

Question = tuple[str, str]  # (fault, the innermost operator that runs; "" outside of all)
Questions = Callable[[], AbstractContextManager[set[Question]]]


@dataclass(frozen=True, slots=True)
class Clean:
    """One cell without a fault. A cell whose child ends has no status, and is left out of the measurement."""

    cell: CellId
    route: str
    status: str
    asked: frozenset[Question]

    @property
    def faults(self) -> frozenset[str]:
        """The faults that it can be changed by: those that some code asks for while it runs."""
        return frozenset(fault for fault, _ in self.asked)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {
            "cell": self.cell.fields(), "route": self.route, "status": self.status, "asked": sorted(self.asked),
        }  # fmt: skip

    @staticmethod
    def from_json(d: dict[str, Any]) -> Clean:
        """Inverse of :meth:`to_json`."""
        asked = frozenset((fault, operator) for fault, operator in d["asked"])
        return Clean(CellId(*d["cell"]), d["route"], d["status"], asked)


def load(file: Path) -> dict[CellId, Clean]:
    """Return what a file holds; a last line that was cut short is left out."""
    lines = file.read_text(encoding="utf-8").split("\n")[:-1] if file.is_file() else []
    found = [Clean.from_json(json.loads(line)) for line in lines]
    return {one.cell: one for one in found}


def run(
    work: CellRunner, cells: Sequence[CellId], questions: Questions, file: Path, timeout: float
) -> dict[CellId, Clean]:
    """Try the cells that the file lacks, each written to it at once. ``timeout`` in seconds a cell."""
    found = load(file)
    lines = [json.dumps(one.to_json()) for one in found.values()]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with file.open("a", encoding="utf-8") as out:
        for one in _tried(work, [cell for cell in cells if cell not in found], questions, timeout):
            found[one.cell] = one
            out.write(json.dumps(one.to_json()) + "\n")
    return {cell: found[cell] for cell in cells}


def _tried(work: CellRunner, cells: Iterable[CellId], questions: Questions, timeout: float) -> Iterable[Clean]:
    progress = Progress()

    def serve(fields: Any) -> dict[str, Any]:
        with questions() as asked:
            observation, _ = work.run(CellId(*fields), 0, progress)
        return {"observation": observation.to_json(), "asked": sorted(asked)}

    child: Child | None = None
    for cell in cells:
        child = child or Child(serve)
        reply = child.ask(cell.fields(), timeout)
        if isinstance(reply, dict):
            status = Observation.from_json(reply["observation"]).status
            asked = frozenset((fault, operator) for fault, operator in reply["asked"])
            yield Clean(cell, work.route(cell), Status(status).value, asked)
        else:
            child.close()
            child = None
            yield Clean(cell, work.route(cell), "", frozenset())
    if child:
        child.close()
