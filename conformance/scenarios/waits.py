"""Waits for a device, during which Python's other threads run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread

import torch

from conformance.scenarios.asking import accelerator, held, module_of, named
from conformance.scenarios.busy_streams import LACKING, synchronize
from conformance.scenarios.model import NotOffered, Results, first_line, scenario

SIZE = 512  # rows of the matrices that keep a device busy
LONG = 0.15  # seconds of a wait; a thread that may run is never silent for half of them
MOST = 1 << 14  # the largest number of calls that is tried to make a wait so long
ATTEMPTS = 12  # waits that are measured, at most
SILENT = 6  # long waits in which no other thread runs: the machine may cause some, but not all


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def threads_run_meanwhile(device: str) -> Results:
    """While a thread waits for the device, Python's other threads run."""
    calls = 0 if device == "cpu" else _long_work(device)
    ways: dict[str, Callable[[torch.Tensor], Callable[[], object]]] = {
        "for_the_accelerator": lambda _: partial(synchronize, device),
        "for_the_device": lambda _: named(module_of(device), "synchronize"),
        "for_the_stream": lambda _: _stream_of(device).synchronize,
        "for_an_event": lambda _: _event_of(device).synchronize,
        "for_a_number": lambda x: x[0, 0].item,
        "for_a_copy": lambda x: x.cpu,
    }
    return held(device, {name: partial(others_run, device, calls, way) for name, way in ways.items()})


def _long_work(device: str) -> int:
    """Return a number of products that keep the device busy for ``LONG`` after the calls; 0 if there is none."""
    calls = 1
    while calls <= MOST:
        start = time.monotonic()
        _multiplied(device, calls)
        called = time.monotonic()
        synchronize(device)
        if time.monotonic() - called > LONG:
            return calls
        if called - start > 2 * LONG:
            return 0
        calls *= 2
    return 0


def _multiplied(device: str, calls: int) -> torch.Tensor:
    x = torch.eye(SIZE, device=device)
    for _ in range(calls):
        result = x @ x
    return result


def others_run(device: str, calls: int, way: Callable[[torch.Tensor], Callable[[], object]]) -> bool:
    """Return whether another thread runs while this one waits. True also if too few waits are long."""
    silent = 0
    for _ in range(ATTEMPTS if calls else 0):
        with _ticking() as ticks:
            wait = way(_multiplied(device, calls))
            begun, start = len(ticks), time.monotonic()
            wait()
            times = [start, *ticks[begun:], time.monotonic()]
        if times[-1] - start < LONG / 2:  # the machine was slower when ``calls`` was measured
            continue
        if max(later - earlier for earlier, later in itertools.pairwise(times)) < LONG / 2:
            return True
        silent += 1
        if silent == SILENT:
            return False
    return True


@contextmanager
def _ticking() -> Iterator[list[float]]:
    """Run a thread that records the time each millisecond, whenever it may run. Yield the list of times."""
    ticks: list[float] = []
    ended = Event()

    def tick() -> None:
        while not ended.wait(0.001):
            ticks.append(time.monotonic())

    thread = Thread(target=tick)
    thread.start()
    try:
        yield ticks
    finally:
        ended.set()
        thread.join()


def _stream_of(device: str) -> torch.Stream:
    """Return the current stream. Raises NotOffered if the device is not torch's accelerator."""
    accelerator(device)
    return torch.accelerator.current_stream(device)


def _event_of(device: str) -> torch.Event:
    """Return an event that was just recorded. Raises NotOffered if the device has no events."""
    try:
        event = torch.Event(device)
        event.record(_stream_of(device))
    except RuntimeError as e:
        if LACKING in str(e):
            raise NotOffered(first_line(e)) from e
        raise
    return event
