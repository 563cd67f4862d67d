"""Runs cells in a forked child, survives its death, and names the case that killed it.

The parent has imported everything and never touched the device, so a new child is ready milliseconds after a death.
Parent and child share one page of memory, in which the child notes the case it is about to call, and on which side.
"""

from __future__ import annotations

import mmap
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from conformance.child import BROKEN, Child, Death, Hang
from conformance.host_leaks import Batch, Searcher, culprit, searchable
from conformance.vocabulary import CaseFailure, CellId, Check, Observation, Status

# Deaths within one cell after which its remaining cases are given up; the observation says so.
DEATHS_PER_CELL = 3
SEARCH_TIMEOUT = 120  # seconds, beside those of a cell, that a search for leaks may take

_PHASES = ("", "cpu", "device")
_NOTE = struct.Struct("<iB")


class Progress:
    """The page shared with the child: the index of the case that is running, and the side."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)

    def note(self, index: int, phase: str) -> None:
        """Called by the child before each call: a store into memory, no system call."""
        _NOTE.pack_into(self._page, 0, index, _PHASES.index(phase))

    def read(self) -> tuple[int, str]:
        """(index of the case, side) last noted."""
        index, phase = _NOTE.unpack_from(self._page, 0)
        return index, _PHASES[phase]


class Work(Protocol):
    """What there is to run. ``run`` and ``reference`` are called in the child, the rest in the parent."""

    def run(self, cell: CellId, first: int, progress: Progress) -> tuple[Observation, int | None]:
        """Run the cases from index ``first`` on: what was seen, and where to go on in a fresh process."""

    def reference(self, cell: CellId, index: int) -> None:
        """Run the CPU side alone of one case, several times."""

    def case_ids(self, cell: CellId) -> list[str]:
        """The ids of the cell's cases, in the order they run."""

    def route(self, cell: CellId) -> str:
        """How the backend serves the cell."""


class Runner:
    """A parent with one child at a time. ``timeout`` is in seconds a cell."""

    def __init__(self, work: Work, timeout: float) -> None:
        self._run = work.run
        self._reference = work.reference
        self._case_ids = work.case_ids
        self._route = work.route
        self._timeout = timeout
        self._child: Child | None = None
        self._progress = Progress()
        self._batch = Batch() if searchable() else None
        self._searcher: Searcher | None = None  # the child's

    def observe(self, cell: CellId, last: bool = False) -> Observation:
        """Run every case of a cell. A death is charged to its case, and the cases after it still run.

        Under LeakSanitizer host memory is searched after a batch of cells, and after the ``last`` one of all.
        """
        observation = self._observe(cell)
        if self._batch is None:
            return observation
        return self._search(observation, self._batch, last)

    def _observe(self, cell: CellId) -> Observation:
        parts: list[Observation] = []
        first: int | None = 0
        while first is not None:
            part, first = self._attempt(cell, first)
            parts.append(part)
            left = len(self._case_ids(cell)) - first if first is not None else 0
            deaths = sum(p.status in (Status.CRASH, Status.TIMEOUT) or bool(p.signal) for p in parts)
            if left <= 0 or deaths >= DEATHS_PER_CELL:
                return merge(parts, left=max(left, 0))
        return merge(parts, left=0)

    def close(self) -> None:
        """End the child."""
        if self._child:
            self._child.close()
            self._child = None

    def gate(self, bring_up: Callable[[], str]) -> str:
        """Try the bring-up gate in a child of its own. Returns what is broken, "" when nothing is."""
        child = Child(lambda _: {"broken": bring_up()})
        try:
            reply = child.ask(None, self._timeout)
        finally:
            child.close()
        if isinstance(reply, dict):
            return str(reply["broken"])
        how = f"hung for {reply.seconds:g} s" if isinstance(reply, Hang) else f"died: {signal_name(reply.status)}"
        return f"the process that tried the primitives {how}\n{reply.log}".strip()

    def _attempt(self, cell: CellId, first: int) -> tuple[Observation, int | None]:
        """(what was observed, the case to go on from, if the child died or is not to be trusted any more)."""
        if self._child is None:
            self._child = Child(self._serve)
        self._progress.note(first, "")
        started = time.perf_counter_ns()
        reply = self._child.ask(_request("run", cell, first), self._timeout)
        if isinstance(reply, dict):
            if reply["go_on"] is not None:
                self.close()  # a reference that reads what nobody wrote may write there too: start afresh
            return Observation.from_json(reply["observation"]), reply["go_on"]
        self.close()
        index, phase = self._progress.read()
        if phase == "device" and self._reference_dies(cell, index):
            phase = "cpu"
        case = self._case_ids(cell)[index]
        wall = time.perf_counter_ns() - started
        return _death(cell, self._route(cell), reply, case, phase, index - first + 1, wall), index + 1

    def _reference_dies(self, cell: CellId, index: int) -> bool:
        """Whether the CPU side of a case, alone in a fresh child, dies as well: then the device is not to blame."""
        child = Child(self._serve)
        try:
            return isinstance(child.ask(_request("reference", cell, index), self._timeout), Death)
        finally:
            child.close()

    def _search(self, observation: Observation, batch: Batch, last: bool) -> Observation:
        """The observation of a batch's newest cell, with what the batch has lost, if it is time to look for that."""
        if self._child is None:  # what ran in a child that is gone cannot be searched
            batch.cells = []
            return observation
        batch.cells.append(observation.cell)
        if not last and not batch.due():
            return observation
        cells, started = batch.cells, time.monotonic()
        lost = self._lost(self._child)
        batch.searched(time.monotonic() - started)
        if not lost:
            return observation
        return _with_leak(observation, lost, cells, culprit(cells, self._loses))

    def _lost(self, child: Child) -> list[str]:
        """What a child's search finds."""
        reply = child.ask({"what": "search"}, self._timeout + SEARCH_TIMEOUT)
        return reply["lost"] if isinstance(reply, dict) else [f"the search for leaks did not end: {reply.log}"]

    def _loses(self, cells: Sequence[CellId]) -> bool:
        """Whether these cells, in a fresh child, lose memory again."""
        child = Child(self._serve)
        try:
            for cell in cells:
                if not isinstance(child.ask(_request("run", cell, 0), self._timeout), dict):
                    return False
            return bool(self._lost(child))
        finally:
            child.close()

    def _serve(self, request: dict[str, Any]) -> dict[str, Any]:
        """In the child: answer one request."""
        if request["what"] == "search":
            self._searcher = self._searcher or Searcher()
            return {"lost": self._searcher.search()}
        cell, index = CellId(*request["cell"]), request["case"]
        if request["what"] == "reference":
            self._reference(cell, index)
            return {}
        observation, go_on = self._run(cell, index, self._progress)
        return {"observation": observation.to_json(), "go_on": go_on}


def _request(what: str, cell: CellId, case: int) -> dict[str, Any]:
    return {"what": what, "cell": [cell.family, cell.overload, cell.dtype, cell.layout], "case": case}


def _death(cell: CellId, route: str, how: Death | Hang, case: str, phase: str, cases: int, wall_ns: int) -> Observation:
    """The observation of a cell whose child died or hung. On the CPU's side that is not the device's fault."""
    if isinstance(how, Hang):
        status, what, name = Status.TIMEOUT, f"did not return within {how.seconds:g} s", ""
    else:
        name = signal_name(how.status)
        status, what = (Status.ERROR if how.status == BROKEN else Status.CRASH), f"died: {name}"
    where = {"cpu": "on the CPU side, in torch itself", "device": "on the device side"}.get(phase, "between cases")
    text = f"the process {what}, {where}" + (f"\n{how.log}" if how.log else "")
    if phase == "cpu":
        reason = f"the CPU reference of {case} {what}"
        return Observation(cell, route, Status.UNSUPPORTED, cases, reason=reason, signal=name, wall_ns=wall_ns)
    report = how.report if isinstance(how, Death) else None
    failure = CaseFailure(case, "", text, report.figures() if report else {})
    return Observation(cell, route, status, cases, (failure,), signal=name, wall_ns=wall_ns)


def _with_leak(
    observation: Observation, lost: Sequence[str], cells: Sequence[CellId], guilty: CellId | None
) -> Observation:
    """An observation that fails for what was lost by its batch, charged to the cell that loses it alone."""
    who = f"by {guilty}, also when it runs alone" if guilty else "by none of them when they run again"
    text = f"host memory was lost in the batch of {len(cells)} cells that ends here, {who}:"
    failure = CaseFailure(
        str(guilty or observation.cell), Check.LEAK.value, "\n  ".join([text, *lost]), {"lost": list(lost)}
    )
    status = min(observation.status, Status.FAIL, key=_WORST.index)
    return replace(observation, status=status, failures=(*observation.failures, failure))


def signal_name(status: int) -> str:
    """``SIGSEGV`` for a wait status of a process killed by it, ``exit code 3`` for one that exited."""
    code = -status if status < 0 else 0
    if not code:
        return f"exit code {status}"
    try:
        return signal.Signals(code).name
    except ValueError:
        return f"signal {code}"


# Which status a cell has when its parts differ: the worst one first.
_WORST = (Status.ERROR, Status.CRASH, Status.TIMEOUT, Status.FAIL, Status.PASS, Status.UNSUPPORTED, Status.NOT_REACHED)


def merge(parts: list[Observation], left: int) -> Observation:
    """One observation of the runs that a cell took. ``left``: cases given up after too many deaths."""
    if len(parts) == 1 and not left:
        return parts[0]
    status = min((p.status for p in parts), key=_WORST.index)
    reasons = [p.reason for p in parts if p.reason]
    if left:
        reasons.append(f"{left} more cases not run after {len(parts)} deaths")
    return Observation(
        parts[0].cell,
        parts[0].route,
        status,
        sum(p.cases for p in parts),
        tuple(f for p in parts for f in p.failures),
        reason="; ".join(reasons),
        signal=next((p.signal for p in parts if p.signal), ""),
        wall_ns=sum(p.wall_ns for p in parts),
        cpu_ns=sum(p.cpu_ns for p in parts),
        raw_ns=sum(p.raw_ns for p in parts),
        compared=sum(p.compared for p in parts),
    )
