"""The requests of the runner to a child, and the replies. They are the same for forked and spawned children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from conformance.records import Observation, PlacedArgument
from conformance.running.host_leaks import Searcher
from conformance.running.progress import Progress
from conformance.vocabulary import CellId


@dataclass(frozen=True, slots=True)
class Tried:
    """A primitive of the bring-up gate. ``text``: its name and its task; ``blocks``: whether all cells need it."""

    name: str
    text: str
    blocks: bool


class Work(Protocol):
    """The work of a child.

    ``run``, ``checks``, ``precede``, ``reference``, ``kernels``, ``try_primitive``, ``without``, ``keeps_subnormals``,
    ``count_on_subnormals``, ``print_stacks``, ``settle`` and ``settle_each_case`` are called in a child, the rest in
    its parent.
    """

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        """Run the cases from index ``first`` up to ``stop``.

        Return the observation, and the index at which a fresh process has to continue, or None.
        """

    def reference(self, cell: CellId, index: int) -> bool:
        """Run only the CPU side of one case, several times. Return whether it reads no memory but its arguments'."""

    def kernels(self, cell: CellId, index: int, *, on_cpu: bool) -> list[str]:
        """Run one case, on the device or on CPU, and return the operators that run there."""

    def checks(self, cell: CellId, index: int) -> list[str]:
        """Judge one case, and return the checks that fail."""

    def precede(self, ids: Sequence[str]) -> None:
        """Run these cases, and all cases of these cells. Their results are discarded."""

    def settle(self) -> dict[str, str] | None:
        """Wait for all work of the device. Return the error (type, message) that this raises, None if there is none."""

    def settle_each_case(self) -> None:
        """From now on, wait for all work of the device after each call and each case, and charge errors to the case."""

    def print_stacks(self) -> None:
        """From now on, have this process print its native stacks if a signal kills it."""

    def prepare(self) -> None:
        """Import what every child needs. Called in the parent before it forks, and in each spawned child."""

    def prepare_for_doubts(self) -> None:
        """Import what most children of a long run need. Called in the parent after it has forked several children."""

    def try_primitive(self, index: int) -> str:
        """Try a primitive of the bring-up gate. Return what is wrong with it, "" if nothing is."""

    def without(self, primitives: Sequence[str]) -> None:
        """From now on, do without these primitives of the gate."""

    def subnormal_dtypes(self) -> tuple[str, ...]:
        """Return the dtypes for which the device is asked whether it keeps subnormal numbers."""

    def keeps_subnormals(self, dtype: str) -> bool:
        """Return whether the device keeps the subnormal numbers of a dtype."""

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        """From now on, expect the device to keep the subnormal numbers of these dtypes."""

    def primitives(self) -> list[Tried]:
        """Return the gate's primitives, in order."""

    def needs(self, cell: CellId, primitives: Sequence[str]) -> str:
        """Return the first of these primitives that the cell needs, "" if it needs none."""

    def case_ids(self, cell: CellId) -> list[str]:
        """Return the ids of the cell's cases, in order."""

    def arguments(self, cell: CellId, index: int) -> tuple[PlacedArgument, ...]:
        """Return the arguments of one of the cell's cases."""

    def route(self, cell: CellId) -> str:
        """Return the route of the cell's overload."""

    def operators(self, calls: Sequence[str]) -> tuple[str, ...]:
        """Return the operators of overloads from a native stack, e.g. ``fill__Scalar``, without unknown overloads."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive cases of one cell: from index ``first`` up to ``stop``, or to the cell's end."""

    cell: CellId
    first: int = 0
    stop: int | None = None

    def request(self, *, stacks: bool = False, settled: bool = False) -> dict[str, Any]:
        """Return the request to run the stretch.

        ``stacks``: print native stacks if the process dies. ``settled``: synchronize after each case.
        """
        asked = {"what": "run", "cell": self.cell.fields(), "first": self.first, "stop": self.stop}
        return asked | {name: True for name, wanted in (("stacks", stacks), ("settled", settled)) if wanted}


def reference_request(cell: CellId, index: int) -> dict[str, Any]:
    """Return the request for :meth:`Work.reference`."""
    return {"what": "reference", "cell": cell.fields(), "first": index}


def kernels_request(cell: CellId, index: int, *, on_cpu: bool = False) -> dict[str, Any]:
    """Return the request for :meth:`Work.kernels`."""
    return {"what": "kernels", "cell": cell.fields(), "first": index, "on_cpu": on_cpu}


def checks_request(cell: CellId, index: int) -> dict[str, Any]:
    """Return the request for :meth:`Work.checks`."""
    return {"what": "checks", "cell": cell.fields(), "first": index}


def precede_request(ids: Sequence[str]) -> dict[str, Any]:
    """Return the request for :meth:`Work.precede`."""
    return {"what": "precede", "ids": list(ids)}


def primitive_request(index: int) -> dict[str, Any]:
    """Return the request for :meth:`Work.try_primitive`."""
    return {"what": "primitive", "index": index}


def without_request(primitives: Sequence[str]) -> dict[str, Any]:
    """Return the request for :meth:`Work.without`."""
    return {"what": "without", "primitives": list(primitives)}


def keeps_request(dtype: str) -> dict[str, Any]:
    """Return the request for :meth:`Work.keeps_subnormals`."""
    return {"what": "keeps", "dtype": dtype}


def subnormals_request(dtypes: Sequence[str]) -> dict[str, Any]:
    """Return the request for :meth:`Work.count_on_subnormals`."""
    return {"what": "subnormals", "dtypes": list(dtypes)}


SEARCH: dict[str, Any] = {"what": "search"}  # the request to find leaks of host memory since the last search


class Server:
    """The child's function that answers requests."""

    def __init__(self, work: Work, progress: Progress) -> None:
        self._work = work
        self._progress = progress
        self._searcher: Searcher | None = None

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["what"] == "primitive":
            return {"broken": self._work.try_primitive(request["index"])}
        if request["what"] == "without":
            self._work.without(request["primitives"])
            return {}
        if request["what"] == "keeps":
            return {"keeps": self._work.keeps_subnormals(request["dtype"])}
        if request["what"] == "subnormals":
            self._work.count_on_subnormals(request["dtypes"])
            return {}
        if request["what"] == "search":
            self._searcher = self._searcher or Searcher()
            return {"lost": [asdict(one) for one in self._searcher.search()]}
        if request["what"] == "precede":
            self._work.precede(request["ids"])
            return {}
        cell, first = CellId(*request["cell"]), request["first"]
        if request["what"] == "reference":
            return {"sound": self._work.reference(cell, first)}
        if request["what"] == "checks":
            return {"checks": self._work.checks(cell, first)}
        if request["what"] == "kernels":
            kernels = self._work.kernels(cell, first, on_cpu=request["on_cpu"])
            return {"kernels": kernels, "late": self._work.settle()}
        if request.get("stacks"):
            self._work.print_stacks()
        if request.get("settled"):
            self._work.settle_each_case()
        observation, go_on = self._work.run(cell, first, self._progress, request["stop"])
        return {"observation": observation.to_json(), "go_on": go_on, "late": self._work.settle()}
