"""A pool of worker processes that run cells in parallel, each with a runner and children of its own; no torch.

The workers are forked before a run's cells are collected, so that each of their children is forked from a process that
holds only the plan. The pool's process hands out cells and receives observations as they come.
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
# A worker has as many cells at hand as take about ``_AT_HAND_S`` seconds, within the bounds on their number.
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

    Both arguments are called in the workers. ``make`` returns a worker's runner. ``complete`` gets an observation and
    the primitives that the bring-up gate found broken, and returns the observation with more facts.
    """

    def __init__(self, make: Callable[[], Runner], jobs: int, complete: Complete = lambda o, _: o) -> None:
        self._make = make
        self._complete = complete
        self._known = Gate()
        self._workers: list[_Worker] = []
        for _ in range(jobs):
            self._workers.append(self._worker())

    def gate(self) -> Gate:
        """Try the bring-up gate in one worker, and tell its result to all workers."""
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
        gc.unfreeze()  # otherwise libraries report their objects from before the fork as leaks when this process ends

    def _worker(self) -> _Worker:
        pipes = [end for worker in self._workers if worker.requests >= 0 for end in (worker.requests, worker.replies)]
        worker = _Worker(self._make, self._complete, pipes)
        worker.tell(self._known)
        return worker

    def _replace(self, ended: _Worker, left: deque[CellId]) -> tuple[list[Gone], _Worker]:
        """Replace a worker that ended. Return its first cell, which was running, and the new worker.

        The other cells of the worker that ended go back to ``left``.
        """
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
        self._seconds = _AT_HAND_S / _FEWEST  # moving average of the time that a cell takes
        self._asked_to_end = False

    def send(self, message: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the worker has ended, which read() finds
            _write(self.requests, message)

    def tell(self, gate: Gate) -> None:
        """Make the worker do without the gate's broken primitives, and expect the subnormal numbers that it found."""
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
        """Send some of the cells ``left`` if the worker has few. After the last one, ask for the held observation."""
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
    """Serve requests until the parent closes the pipe or dies. The worker's main function."""
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
    """The service of a worker, which answers the requests of the pool."""

    make: Callable[[], Runner]
    complete: Complete
    outgoing: int
    without: Sequence[str] = ()  # the broken primitives of the bring-up gate
    held: Observation | None = None  # the newest observation, until the next cell or a search for leaks has run

    def serve(self, incoming: int) -> None:
        runner = self.make()
        with os.fdopen(incoming, "rb") as requests:
            while head := requests.read(_LENGTH.size):
                request = requests.read(_LENGTH.unpack(head)[0])
                if request == _GATE:
                    self._send({"gate": runner.gate().to_json()})
                elif request == _END:
                    self._tell(runner.searched(self.held) if self.held else None)
                    self.held = None  # told; cells of a worker that dies may still come
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
