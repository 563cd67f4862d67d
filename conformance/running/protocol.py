"""What a child is asked by the runner, and how it answers: the same in a forked child and in a spawned one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from conformance.running.host_leaks import Searcher
from conformance.running.progress import Progress
from conformance.vocabulary import CellId, Observation


class Work(Protocol):
    """What there is to run.

    ``run``, ``reference``, ``kernels`` and ``bring_up`` are called in a child, the rest in its parent.
    """

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        """Run the cases from index ``first`` up to ``stop``: what was seen, and where to go on in a fresh process."""

    def reference(self, cell: CellId, index: int) -> None:
        """Run the CPU side alone of one case, several times."""

    def kernels(self, cell: CellId, index: int, *, on_cpu: bool) -> list[str]:
        """The operators that run in one case, which is run once more for it, on the device or on CPU."""

    def prepare(self) -> None:
        """Load what every child needs. Called in the parent of forked children before the first, in a spawned one."""

    def bring_up(self, progress: Progress) -> str:
        """What is broken of the primitives that every comparison stands on; "" when nothing is. Notes their indices."""

    def primitives(self) -> list[str]:
        """What they are called, in the order they are tried."""

    def case_ids(self, cell: CellId) -> list[str]:
        """The ids of the cell's cases, in the order they run."""

    def route(self, cell: CellId) -> str:
        """How the backend serves the cell."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Cases of one cell that ran one after the other: from ``first`` up to ``stop``, or to the cell's end."""

    cell: CellId
    first: int = 0
    stop: int | None = None

    def request(self) -> dict[str, Any]:
        return {"what": "run", "cell": self.cell.fields(), "first": self.first, "stop": self.stop}


def reference_request(cell: CellId, index: int) -> dict[str, Any]:
    """Asks for the CPU side alone of one case."""
    return {"what": "reference", "cell": cell.fields(), "first": index}


def kernels_request(cell: CellId, index: int, *, on_cpu: bool = False) -> dict[str, Any]:
    """Asks for the operators that run in one case, on the device or on CPU."""
    return {"what": "kernels", "cell": cell.fields(), "first": index, "on_cpu": on_cpu}


GATE: dict[str, Any] = {"what": "gate"}
SEARCH: dict[str, Any] = {"what": "search"}  # for host memory that was lost since the search before


class Server:
    """Answers requests, in the child."""

    def __init__(self, work: Work, progress: Progress) -> None:
        self._work = work
        self._progress = progress
        self._searcher: Searcher | None = None

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["what"] == "gate":
            return {"broken": self._work.bring_up(self._progress)}
        if request["what"] == "search":
            self._searcher = self._searcher or Searcher()
            return {"lost": [asdict(one) for one in self._searcher.search()]}
        cell, first = CellId(*request["cell"]), request["first"]
        if request["what"] == "reference":
            self._work.reference(cell, first)
            return {}
        if request["what"] == "kernels":
            return {"kernels": self._work.kernels(cell, first, on_cpu=request["on_cpu"])}
        observation, go_on = self._work.run(cell, first, self._progress, request["stop"])
        return {"observation": observation.to_json(), "go_on": go_on}
