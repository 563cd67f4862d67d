"""Ops that are called at the same time: by threads of a new process, and on two streams."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch

from conformance.scenarios.asking import current
from conformance.scenarios.busy_streams import keep_busy, new_stream, on_stream, synchronize, with_streams
from conformance.scenarios.kinds_of_ops import CALLS, alone, compared, operands, tried
from conformance.scenarios.model import Broken, NotOffered, Results, scenario
from conformance.scenarios.new_processes import results_of

ROWS = 16  # rows of the operands of threads
THREADS = 4  # threads that make the same call, and the number of different operands
IN_A_ROW = 3  # calls of a thread in a step; the first calls are the first ones of the process
PATIENCE = 60.0  # seconds within which the threads must end a step
ON_STREAMS = (16, 4096)  # rows and columns of operands on streams
IN_TURN = 4  # calls on each of two streams

STREAMS = ("one_stream", "own_streams")
#: How threads call the ops, by the kind of their process.
PROCESSES = {
    "same": f"{THREADS} threads of a new process make this call at once",
    "mixed": "each thread of a new process makes another call at once",
}
AROUND_ON_STREAMS = "two busy streams get this call in turn, each with another x and y"
#: The results of each call alone, on the host, for each set of operands.
Wanted = dict[str, list[list[torch.Tensor]]]
Work = tuple[torch.Stream | None, dict[str, torch.Tensor]]  # a stream, and the operands of the calls on it


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def calls_of_threads(device: str) -> Results:
    """Ops that threads of a new process call at once, on one stream or on their own, give what they give alone."""
    if device == "cpu":
        names = [f"{where}.{kind}.{name}" for where in STREAMS for kind in PROCESSES for name in CALLS]
        return {name: torch.tensor(True) for name in names}
    wanted, lacking = results_alone(device)
    results: Results = {}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "wanted")
        torch.save(wanted, file)
        for where in STREAMS:
            try:
                for kind in PROCESSES:
                    (found,) = results_of(device, work_of_threads, [(device, kind, where, file)])
                    results |= {f"{where}.{kind}.{name}": one for name, one in {**found, **lacking}.items()}
            except NotOffered as e:
                results[where] = e
    return results


def results_alone(device: str) -> tuple[Wanted, dict[str, NotOffered]]:
    """Return the results of each call alone for each set of operands, and the calls that are not offered."""
    given = [operands(device, i, ROWS) for i in range(THREADS)]
    wanted, lacking = Wanted(), dict[str, NotOffered]()
    for name in CALLS:
        wanted[name] = []
        for one in given:
            if isinstance(found := alone(name, one), NotOffered):
                lacking[name] = found
            else:
                wanted[name].append(found)
    return {name: found for name, found in wanted.items() if name not in lacking}, lacking


def work_of_threads(device: str, kind: str, where: str, file: str) -> Results:
    """Start threads in this new process that begin each step at once. Return whether each call in the file is right.

    Raises RuntimeError if the threads do not end, and NotOffered if they need streams and the device has none.
    """
    wanted: Wanted = torch.load(file, weights_only=True)
    torch.ones(1, device=device).cpu()  # this tries the first use of ops, not of the device
    steps = steps_of(kind, list(wanted))
    streams = [with_streams(new_stream, device) if where == "own_streams" else None for _ in steps]
    found: Results = {name: torch.tensor(True) for name in wanted}

    def work(i: int, begin: Callable[[], object]) -> None:
        stream, number = streams[i], i % THREADS
        with current(stream) if stream else nullcontext():
            given = operands(device, number, ROWS)
            for step in steps[i]:
                begin()
                made = [(name, tried(name, given)) for name in step]
                judged = ((name, compared(name, PROCESSES[kind], one, wanted[name][number])) for name, one in made)
                found.update({name: one for name, one in judged if isinstance(one, Broken)})

    if steps:
        run_threads(len(steps), work)
    return found


def steps_of(kind: str, names: Sequence[str]) -> list[list[list[str]]]:
    """Return the steps of each thread, and the calls of each step. All threads begin a step at once."""
    if kind == "same":
        return [[[name] * IN_A_ROW for name in names]] * THREADS
    return [[[names[(i + turn) % len(names)] for turn in range(IN_A_ROW)]] for i in range(len(names))]


def run_threads(count: int, work: Callable[[int, Callable[[], object]], None]) -> None:
    """Call ``work`` in threads, each with its index and a function that begins a step.

    The function returns when all threads have called it. Raises the error of a thread, and RuntimeError if a step does
    not end. The time limit is that of one step: a device may compile each op at its first call, so all steps together
    may take long.
    """
    begun, errors = [time.monotonic()], list[Exception]()
    barrier = threading.Barrier(count, lambda: begun.append(time.monotonic()))
    sys.setswitchinterval(1e-6)  # seconds: threads switch after a few lines of Python

    def guarded(i: int) -> None:
        try:
            work(i, partial(barrier.wait, PATIENCE))
        except Exception as e:  # noqa: BLE001  # raised again below
            errors.append(e)
            barrier.abort()

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and (left := begun[-1] + PATIENCE - time.monotonic()) > 0:
            thread.join(left)
    for e in errors:
        if not isinstance(e, threading.BrokenBarrierError):
            raise e
    if errors or any(thread.is_alive() for thread in threads):
        raise RuntimeError(f"{count} threads have not ended a step after {PATIENCE:.0f} s")


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def calls_on_two_streams(device: str) -> Results:
    """Ops that are called on two busy streams in turn, with other values on each, give what they give alone."""
    if device == "cpu":
        return {name: torch.tensor(True) for name in CALLS}
    return calls_on(device)


def calls_on(device: str) -> Results:
    """Return for each call whether it is right if it runs on two streams at the same time. Raises NotOffered."""
    gate, *streams = (with_streams(new_stream, device) for _ in range(3))
    given = [operands(device, i, *ON_STREAMS) for i in range(len(streams))]
    return {name: _on_streams(name, device, gate, list(zip(streams, given, strict=True))) for name in CALLS}


def _on_streams(
    name: str, device: str, gate: torch.Stream | None, work: Sequence[Work]
) -> torch.Tensor | NotOffered | Broken:
    """Return whether calls are right that wait for one gate, and then run on two streams at the same time."""
    wanted = list[list[torch.Tensor]]()
    for _, given in work:
        if isinstance(found := alone(name, given), NotOffered):
            return found
        wanted.append(found)
    with on_stream(gate):
        keep_busy(device)
    for stream, _ in work:
        if stream and gate:
            stream.wait_stream(gate)
    made = []
    for _ in range(IN_TURN):
        for i, (stream, given) in enumerate(work):
            with current(stream) if stream else nullcontext():
                made.append((i, tried(name, given)))
    synchronize(device)
    judged = [compared(name, AROUND_ON_STREAMS, one, wanted[i]) for i, one in made]
    return next((one for one in judged if isinstance(one, Broken)), torch.tensor(True))
