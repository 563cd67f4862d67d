"""The runs of cells with all faults asleep, which record the operators that ask for each fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from conformance.running.cell_runner import CellRunner
from conformance.running.child import Child
from conformance.running.progress import Progress
from conformance.vocabulary import CellId
from tools.causes.clean import Clean, Question, load

Questions = Callable[[], AbstractContextManager[set[Question]]]


def run(
    work: CellRunner, cells: Sequence[CellId], questions: Questions, file: Path, timeout: float
) -> dict[CellId, Clean]:
    """Run the cells that the file lacks, and append each to it. ``timeout``: seconds for each cell."""
    found = load(file)
    lines = [json.dumps(one.to_json()) for one in found.values()]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with file.open("a", encoding="utf-8") as out:
        for one in _in_children(_Server(work, questions), work, [cell for cell in cells if cell not in found], timeout):
            found[one.cell] = one
            out.write(json.dumps(one.to_json()) + "\n")
    return {cell: found[cell] for cell in cells}


def _in_children(serve: _Server, work: CellRunner, cells: Iterable[CellId], timeout: float) -> Iterable[Clean]:
    """Run the cells in a child, and in a new child after a death."""
    child: Child | None = None
    for cell in cells:
        child = child or Child(serve)
        reply = child.ask(cell.fields(), timeout)
        if isinstance(reply, dict):
            asked = frozenset((fault, operator) for fault, operator in reply["asked"])
            yield Clean(cell, work.route(cell), reply["status"], asked)
        else:
            child.close()
            child = None
            yield Clean(cell, work.route(cell), "", frozenset())
    if child:
        child.close()


class _Server:
    """The function of the child, which runs one cell for each request."""

    def __init__(self, work: CellRunner, questions: Questions) -> None:
        self._work = work
        self._questions = questions
        self._progress = Progress()

    def __call__(self, fields: Any) -> dict[str, Any]:
        with self._questions() as asked:
            observation, _ = self._work.run(CellId(*fields), 0, self._progress)
        return {"status": observation.status.value, "asked": sorted(asked)}
