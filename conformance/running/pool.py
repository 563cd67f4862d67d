"""A pool of worker processes that run cells in parallel, each with a runner and children of its own; no torch.

They are forked before a run's cells are collected, so that each of their children is forked from a process that holds
the plan and nothing else. This process hands out cells and takes observations as they come.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import signal
import struct
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from conformance.records import Gate, GateFailure, Observation
from conformance.running.child import BROKEN, remove_directories, tie_to
from conformance.running.runner import Runner
from conformance.support.forking import fork
from conformance.support.signals import ignore_interruptions, signal_name
from conformance.vocabulary import CellId

_LENGTH = struct.Struct("<I")
_READ = 1 << 16  # bytes
# Cells that a worker has at hand: as many as take about so many seconds, within these bounds.
_AT_HAND_S = 0.1
_FEWEST, _MOST = 2, 64

Complete = Callable[[Observation, Sequence[str]], Observation]

_GATE = b'"gate"'
_END = b'"end"'


@dataclass(frozen=True, slots=True)
class Gone:
    """A cell whose worker ended before it reported the cell. ``how`` is the worker's end: "SIGKILL", "exit code 3"."""

    cell: CellId
    how: str


class Pool:
    """A pool of ``jobs`` workers.

    In each worker, ``make`` returns its runner, and ``complete`` returns an observation with more facts in it, given
    the primitives that the bring-up gate found broken.
    """

    def __init__(self, make: Callable[[], Runner], jobs: int, complete: Complete = lambda o, _: o) -> None:
        self._make = make
        self._complete = complete
        self._known = Gate()
        self._workers: list[_Worker] = []
        for _ in range(jobs):
            self._workers.append(self._worker())

    def gate(self) -> Gate:
        """Try the bring-up gate in one worker. All workers then work by its result."""
        worker = self._workers[0]
        worker.send(_GATE)
        while True:
            for message in worker.read():
                return self._tell(Gate.from_json(message["gate"]))
            if worker.ended:
                return Gate(GateFailure(f"the worker that tried the gate ended: {worker.reap()}"))

    def _tell(self, gate: Gate) -> Gate:
        self._known = gate
        for worker in self._workers:
            worker.tell(gate)
        return gate

    def run(self, cells: Sequence[CellId]) -> Iterator[Observation | Gone]:
        """Run every cell once; yield each observation as it comes, in any order."""
        left = deque(cells)
        with selectors.DefaultSelector() as selector:
            for worker in self._workers[: len(left)]:
                selector.register(worker.replies, selectors.EVENT_READ, worker)
                worker.hand_out(left, len(self._workers))
            while selector.get_map():
                for key, _ in selector.select():
                    worker = key.data
                    yield from worker.observed()
                    if worker.ended:
                        selector.unregister(worker.replies)
                        gone, worker = self._replace(worker, left)
                        yield from gone
                        selector.register(worker.replies, selectors.EVENT_READ, worker)
                    worker.hand_out(left, len(self._workers))
                    if not left and not worker.at_hand:
                        selector.unregister(worker.replies)

    def close(self) -> None:
        """End the workers. A worker with cells left is killed."""
        for worker in self._workers:
            worker.close()
        gc.unfreeze()  # else libraries report at this process's end that what they had before the fork has leaked

    def _worker(self) -> _Worker:
        pipes = [end for worker in self._workers if worker.requests >= 0 for end in (worker.requests, worker.replies)]
        worker = _Worker(self._make, self._complete, pipes)
        worker.tell(self._known)
        return worker

    def _replace(self, ended: _Worker, left: deque[CellId]) -> tuple[list[Gone], _Worker]:
        """Replace a worker that ended. The first of its cells was running; the others go back to ``left``."""
        how = ended.reap()
        gone = [Gone(ended.at_hand.popleft(), how)] if ended.at_hand else []
        left.extendleft(reversed(ended.at_hand))
        ended.close()
        fresh = self._worker()
        self._workers[self._workers.index(ended)] = fresh
        return gone, fresh


class _Worker:
    """One worker process, and the pool's ends of its pipes."""

    def __init__(self, make: Callable[[], Runner], complete: Complete, others: Sequence[int]) -> None:
        """Fork the worker, which closes the descriptors ``others``."""
        incoming, self.requests = os.pipe()
        self.replies, outgoing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # keep pages shared: the worker's collector does not touch them
        self.pid = fork()
        if self.pid == 0:
            for descriptor in (self.requests, self.replies, *others):
                os.close(descriptor)
            _live(make, complete, incoming, outgoing)
        os.close(incoming)
        os.close(outgoing)
        self.at_hand: deque[CellId] = deque()  # handed out and not observed, in the order in which they run
        self.ended = False
        self._pending = bytearray()
        self._status: int | None = None
        self._seconds = _AT_HAND_S / _FEWEST  # that a cell takes, of late
        self._asked_to_end = False

    def send(self, message: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it ended: reading says so
            _write(self.requests, message)

    def tell(self, gate: Gate) -> None:
        """Have it do without the broken primitives of the bring-up gate, and judge by what the device keeps."""
        if gate.limits or gate.subnormals:
            self.send(json.dumps({"without": [*gate.limits], "subnormals": [*gate.subnormals]}).encode())

    def read(self) -> list[dict[str, Any]]:
        """Wait for messages and return them. Sets ``ended`` at the end of the pipe."""
        more = os.read(self.replies, _READ)
        self.ended = not more
        self._pending += more
        found = []
        while len(self._pending) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._pending)[0]
            if len(self._pending) < end:
                break
            found.append(json.loads(self._pending[_LENGTH.size : end]))
            del self._pending[:end]
        return found

    def observed(self) -> Iterator[Observation]:
        """Wait for observations and yield them."""
        for message in self.read():
            observation = Observation.from_json(message)
            self.at_hand.remove(observation.cell)
            self._seconds += (observation.wall_ns / 1e9 - self._seconds) / 8
            yield observation

    def hand_out(self, left: deque[CellId], workers: int) -> None:
        """Send some of the cells ``left`` to a worker that has few; after the last, ask for what it holds back."""
        wanted = min(_MOST, max(_FEWEST, int(_AT_HAND_S / max(self._seconds, 1e-9))), max(1, len(left) // workers))
        if left and len(self.at_hand) <= max(1, wanted // 2):  # the newest may be held back, see _Service
            cells = [left.popleft() for _ in range(min(wanted, len(left)))]
            self.at_hand.extend(cells)
            self._asked_to_end = False
            self.send(json.dumps([cell.fields() for cell in cells]).encode())
        if not left and not self._asked_to_end:
            self._asked_to_end = True
            self.send(_END)

    def close(self) -> None:
        """End the worker; kill it if it has cells left."""
        if self.requests < 0:
            return
        os.close(self.requests)
        if self.at_hand and self._status is None:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.replies)
        self.requests = -1
        self.reap()

    def reap(self) -> str:
        """Wait for the worker's end; return its signal or exit code as text."""
        if self._status is None:
            _, status = os.waitpid(self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
            remove_directories(self.pid)  # it may have been killed
        return signal_name(self._status)


def _live(make: Callable[[], Runner], complete: Complete, incoming: int, outgoing: int) -> NoReturn:
    """Run the cells that come in, until the parent closes the pipe or dies. The worker's main function."""
    code = 0
    try:
        ignore_interruptions()  # the parent ends the run
        tie_to(os.getppid())
        _Service(make, complete, outgoing).serve(incoming)
    except BaseException:  # noqa: BLE001  # nothing above this frame may run twice
        traceback.print_exc()
        sys.stderr.flush()
        code = BROKEN
    os._exit(code)


@dataclass
class _Service:
    """The requests that a worker serves."""

    make: Callable[[], Runner]
    complete: Complete
    outgoing: int
    without: Sequence[str] = ()  # the broken primitives of the bring-up gate
    held: Observation | None = None  # the newest one, until it is known what host memory its batch has lost

    def serve(self, incoming: int) -> None:
        runner = self.make()
        with os.fdopen(incoming, "rb") as requests:
            while head := requests.read(_LENGTH.size):
                request = requests.read(_LENGTH.unpack(head)[0])
                if request == _GATE:
                    self._send({"gate": runner.gate().to_json()})
                elif request == _END:
                    self._tell(runner.searched(self.held) if self.held else None)
                elif isinstance(asked := json.loads(request), dict):
                    self.without = asked["without"]
                    runner.without(self.without)
                    runner.count_on_subnormals(asked["subnormals"])
                else:
                    for cell in asked:
                        self._run(runner, CellId(*cell))
        runner.close()

    def _run(self, runner: Runner, cell: CellId) -> None:
        observation = runner.observe(cell)
        if not runner.searches:
            self._tell(observation)
            return
        self._tell(self.held)
        self.held = observation

    def _tell(self, observation: Observation | None) -> None:
        if observation:
            self._send(self.complete(observation, self.without).to_json())

    def _send(self, message: dict[str, Any]) -> None:
        _write(self.outgoing, json.dumps(message).encode())


def _write(descriptor: int, message: bytes) -> None:
    data = memoryview(_LENGTH.pack(len(message)) + message)
    while data:
        data = data[os.write(descriptor, data) :]
