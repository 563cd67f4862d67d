"""``Stream`` and ``Event`` of a device's module, which are often the author's own classes, in place of torch's.

CPU has no counterpart. Its results are the expected ones: each property holds. A method that they lack, or that takes
other arguments, is not offered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import Property, accelerator, held, module_of, named, on_device
from conformance.scenarios.busy_streams import LACKING, filled, keep_busy, synchronize
from conformance.scenarios.model import NotOffered, Results, first_line, scenario

WAIT = 0.02  # seconds between two events


class _Module:
    """The streams and events of a device's module, while this device is the current one."""

    def __init__(self, device: str) -> None:
        self.device = device

    def make(self, name: str, *given: Any, **how: Any) -> Any:
        """Call a function of the module. Raises NotOffered if the module has no such function."""
        return named(module_of(self.device), name)(*given, **how)

    def stream(self, **how: Any) -> Any:
        """Return a new stream that waits for the work of the current one."""
        found = self.make("Stream", device=self.device, **how)
        found.wait_stream(self.current())
        return found

    def current(self) -> Any:
        return self.make("current_stream", torch.device(self.device))

    def block(self, stream: Any) -> Any:
        return self.make("stream", stream)


def _recorded_there(module: _Module, stream: Any, event: Any) -> None:
    with module.block(stream):
        event.record()


def _waiting_there(module: _Module, stream: Any, event: Any) -> None:
    with module.block(stream):
        event.wait()


#: Ways to record an event on a stream. Some return the event that they have recorded.
RECORDS: dict[str, Callable[[_Module, Any, Any], Any]] = {
    "record": lambda _, stream, event: event.record(stream),
    "record_there": _recorded_there,
    "record_event": lambda _, stream, event: stream.record_event(event),
    "record_new_event": lambda _, stream, __: stream.record_event(),
}
#: Ways to wait for an event of the first stream, or for that stream: the second stream or the host waits.
WAITS: dict[str, Callable[[_Module, Any, Any, Any], Any]] = {
    "wait": lambda _, __, stream, event: event.wait(stream),
    "wait_there": lambda module, _, stream, event: _waiting_there(module, stream, event),
    "wait_event": lambda _, __, stream, event: stream.wait_event(event),
    "wait_stream": lambda _, first, stream, __: stream.wait_stream(first),
    "synchronize": lambda _, __, ___, event: event.synchronize(),
    "synchronize_stream": lambda _, first, __, ___: first.synchronize(),
}


def _ordered(module: _Module, record: str, wait: str, **how: Any) -> bool:
    """Return whether a stream that waits for another one reads what the other one has written."""
    device = module.device
    x = filled(device, -1.0)
    first, second, event = module.stream(), module.stream(), module.make("Event", **how)
    with module.block(first):
        keep_busy(device)
        x.fill_(7.0)
    event = RECORDS[record](module, first, event) or event
    WAITS[wait](module, first, second, event)
    with module.block(second):
        made = x + 1
    synchronize(device)
    return bool(made.cpu().eq(8).all()) and bool(event.query()) and bool(first.query())


def _not_recorded(module: _Module) -> bool:
    """Return whether an event that was not recorded counts as reached, and does not block."""
    event = module.make("Event")
    event.wait()
    event.synchronize()
    return bool(event.query())


def _timed(module: _Module) -> bool:
    first, last = (module.make("Event", enable_timing=True) for _ in range(2))
    begin = time.perf_counter()
    for event in (first, last):
        event.record()
        event.synchronize()
        time.sleep(WAIT if event is first else 0)
    passed = time.perf_counter() - begin
    return bool(0.9 * WAIT <= first.elapsed_time(last) / 1000 <= 1.1 * passed)


def _preferred(module: _Module) -> bool:
    """Return whether a stream that asks for a high priority differs from the current one, and does its work."""
    stream = module.stream(priority=-1)
    with module.block(stream):
        made = filled(module.device, 2.0) + 1
    stream.synchronize()
    return bool(stream.stream_id != module.current().stream_id and made.cpu().eq(3).all())


def _current_in_its_block(module: _Module) -> bool:
    """Return whether the module and ``torch.accelerator`` report a stream as current in its block, and only there."""
    stream, before = module.stream(), module.current().stream_id
    with module.block(stream):
        within = {module.current().stream_id, torch.accelerator.current_stream(module.device).stream_id}
    return bool(within == {stream.stream_id} and module.current().stream_id == before != stream.stream_id)


@contextmanager
def _offered() -> Iterator[None]:
    """Raise NotOffered for a missing method, for arguments that a method does not take, and without streams."""
    try:
        yield
    except (TypeError, AttributeError) as e:
        raise NotOffered(first_line(e)) from e
    except RuntimeError as e:
        if LACKING in str(e):
            raise NotOffered(first_line(e)) from e
        raise


@scenario(exact=True, area="devices", accelerators=True)
def streams_and_events_of_the_module(device: str) -> Results:
    """Streams and events of ``torch.<device>`` order work and tell times as ``torch.Stream`` and ``torch.Event`` do."""

    def holds(asked: Callable[..., bool], *given: str, **how: Any) -> bool:
        accelerator(device)
        with _offered(), on_device(torch.device(device).index or 0):
            return asked(_Module(device), *given, **how)

    ways = [(record, "wait_event") for record in RECORDS] + [("record", wait) for wait in WAITS]
    orders: dict[str, Property] = {
        f"{record}.{wait}{'.timed' if how else ''}": partial(holds, _ordered, record, wait, **how)
        for record, wait in dict.fromkeys(ways)
        for how in ({}, {"enable_timing": True})
    }
    others = {"not_recorded": _not_recorded, "timed": _timed, "preferred": _preferred, "block": _current_in_its_block}
    return held(device, orders | {name: partial(holds, asked) for name, asked in others.items()})
