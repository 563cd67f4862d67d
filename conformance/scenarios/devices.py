"""Promises of PyTorch about a device's module, ``torch.accelerator``, streams, events and memory.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch

from conformance.scenarios.asking import accelerator, current, held, module_of, named, on_device
from conformance.scenarios.counted_memory import CountedMemory
from conformance.scenarios.model import NotOffered, Results, first_line, scenario, unless_first
from conformance.scenarios.new_processes import results_of
from conformance.support.time_limits import TimeLimit

WAIT = 0.02  # seconds between two events
TIMES, SHORT = 5, 0.0013  # number of times that are measured, and seconds between their events
RESOLUTION = 0.001  # seconds by which the times of events may be wrong
LOOKS, MOST_LOOKS = 20, 1000  # checks whether a thread has ended, one per millisecond: without and with /proc
THREADS = 4  # threads that leave a stream of their own current, one after the other
PATIENCE = 20.0  # seconds within which a few calls must be done


def _starts_alike_in_each_thread() -> bool:
    """Return whether a new thread's current device does not depend on the choices of earlier threads."""
    if torch.accelerator.device_count() < 2:
        raise NotOffered("a second device")
    before, found = torch.accelerator.current_device_index(), list[int]()
    for chosen in (1 - before, before):
        for work in (
            partial(torch.accelerator.set_device_index, chosen),
            lambda: found.append(torch.accelerator.current_device_index()),
        ):
            _in_a_new_thread(work)
    return len(set(found)) == 1


def _is_left_by_a_negative_index(device: str) -> bool:
    """Return whether a negative index leaves the current device as it is, with or without an error."""
    accelerator(device)
    before = torch.accelerator.current_device_index()
    try:
        with suppress(RuntimeError, ValueError, AssertionError):
            named(module_of(device), "set_device")(-1)
        return bool(torch.accelerator.current_device_index() == before)
    finally:
        torch.accelerator.set_device_index(before)


@scenario(exact=True, area="devices", accelerators=True)
def counts_and_current_device(device: str) -> Results:
    """``torch.<device>`` and ``torch.accelerator`` agree on the devices, and on the current one of the thread."""

    def both() -> tuple[int, int]:
        accelerator(device)
        own = named(module_of(device), "current_device")()
        assert isinstance(own, int)
        return own, torch.accelerator.current_device_index()

    def count() -> bool:
        accelerator(device)
        return bool(named(module_of(device), "device_count")() == torch.accelerator.device_count())

    def moved() -> bool:
        if torch.accelerator.device_count() < 2:
            raise NotOffered("a second device")
        with on_device(1):
            return both() == (1, 1) and torch.ones(1, device=torch.device(device).type).device.index == 1

    def of_a_thread() -> bool:
        if torch.accelerator.device_count() < 2:
            raise NotOffered("a second device")
        before = torch.accelerator.current_device_index()
        moved = threading.Thread(target=torch.accelerator.set_device_index, args=(1 - before,))
        moved.start()
        moved.join()
        return bool(torch.accelerator.current_device_index() == before)

    return held(device, {
        "of_a_later_thread": _starts_alike_in_each_thread,
        "below_zero": partial(_is_left_by_a_negative_index, device),
        "available": lambda: bool(named(module_of(device), "is_available")()),
        "count": count,
        "current": lambda: len(set(both())) == 1,
        "another_one": moved,
        "of_a_thread": of_a_thread,
        "index_of_tensors": lambda: torch.ones(1, device=torch.device(device).type).device.index == both()[0],
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def streams_and_events(device: str) -> Results:
    """A new stream is another one, and work on it is seen behind an event."""

    def new_stream() -> bool:
        accelerator(device)
        before = torch.accelerator.current_stream(device)
        stream = torch.Stream(device)
        with current(stream):
            return bool(torch.accelerator.current_stream(device) == stream) and bool(stream != before)

    def another_one() -> bool:
        accelerator(device)
        streams = [torch.Stream(device) for _ in range(2)]
        return bool(streams[0] != streams[1])

    def waited() -> bool:
        accelerator(device)
        stream, done, x = torch.Stream(device), torch.Event(device), torch.zeros(1000, device=device)
        stream.wait_stream(torch.accelerator.current_stream(device))
        with current(stream):
            x.add_(1)
            done.record(stream)
        done.wait(torch.accelerator.current_stream(device))
        seen = x.sum().item() == 1000
        done.synchronize()  # a device may give values to the host before the event is complete
        return bool(seen and done.query())

    def synchronized() -> bool:
        accelerator(device)
        stream = torch.Stream(device)
        torch.accelerator.synchronize(device)
        return bool(stream.query())

    return held(device, {
        "new_stream": new_stream, "another_one": another_one, "work_behind_an_event": waited,
        "synchronized": synchronized,
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def current_streams(device: str) -> Results:
    """A block with a stream makes it current in its thread alone, and leaves the one before current."""

    def block() -> bool:
        accelerator(device)
        stream, before = torch.Stream(device), torch.accelerator.current_stream(device)
        index = torch.accelerator.current_device_index()
        with named(module_of(device), "stream")(stream):  # type: ignore[attr-defined]
            within = torch.accelerator.current_stream(device) == stream
        restored = torch.accelerator.current_stream(device) == before
        return bool(within and restored and torch.accelerator.current_device_index() == index)

    def with_stream() -> bool:
        accelerator(device)
        if not hasattr(torch.Stream, "__enter__"):
            raise NotOffered(f"a block with a torch.Stream in torch {torch.__version__}")
        stream, before = torch.Stream(device), torch.accelerator.current_stream(device)
        with stream:
            within = torch.accelerator.current_stream(device) == stream
        return bool(within and torch.accelerator.current_stream(device) == before)

    def left_by_an_error() -> bool:
        accelerator(device)
        before = torch.accelerator.current_stream(device)
        with suppress(ZeroDivisionError), named(module_of(device), "stream")(torch.Stream(device)):  # type: ignore[attr-defined]
            raise ZeroDivisionError
        return bool(torch.accelerator.current_stream(device) == before)

    def of_a_thread() -> bool:
        accelerator(device)
        found: list[bool] = []
        stream = torch.Stream(device)
        with current(stream):
            ask = threading.Thread(target=lambda: found.append(torch.accelerator.current_stream(device) == stream))
            ask.start()
            ask.join()
        return found == [False]

    return held(device, {
        "block": block, "with_stream": with_stream, "left_by_an_error": left_by_an_error, "of_a_thread": of_a_thread,
        "after_threads_that_ended": partial(_current_after_threads_that_ended, device),
    })  # fmt: skip


def _current_after_threads_that_ended(device: str) -> bool:
    """Return whether new threads start with the same current stream, whatever stream ended threads left current."""
    accelerator(device)
    found: list[object] = []
    streams = [torch.Stream(device) for _ in range(THREADS)]

    def leave(stream: torch.Stream) -> None:
        torch.accelerator.set_stream(stream)

    def ask() -> None:
        found.append(torch.accelerator.current_stream(device))

    _in_a_new_thread(ask)
    for stream in streams:
        _in_a_new_thread(partial(leave, stream))
        _in_a_new_thread(ask)
    return len(found) == THREADS + 1 and all(stream == found[0] for stream in found)


def _in_a_new_thread(work: Callable[[], object]) -> None:
    """Call ``work`` in a thread, and wait until the thread has ended, so that the system may reuse its id."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    tasks = Path("/proc/self/task")
    for _ in range(MOST_LOOKS if tasks.exists() else LOOKS):  # the system ends a thread after Python does
        time.sleep(0.001)
        if tasks.exists() and not (tasks / str(thread.native_id)).exists():
            break


def _timing_events(device: str) -> tuple[torch.Event, torch.Event]:
    accelerator(device)
    return torch.Event(device, enable_timing=True), torch.Event(device, enable_timing=True)


def _around_a_call(device: str) -> tuple[torch.Event, torch.Event]:
    """Return events that were recorded before and after a call, once the device has reached them."""
    first, last = _timing_events(device)
    first.record()
    torch.ones(1000, device=device).add_(1)
    last.record()
    last.synchronize()
    return first, last


def _is_time_of_wait(device: str) -> bool:
    """Return whether the time between two events, in milliseconds, is that of a wait between them."""
    first, last = _timing_events(device)
    begin = time.perf_counter()
    first.record()
    first.synchronize()
    time.sleep(WAIT)
    last.record()
    last.synchronize()
    passed = time.perf_counter() - begin
    return bool(0.9 * WAIT <= first.elapsed_time(last) / 1000 <= 1.1 * passed)


def _is_time_of_work(device: str) -> bool:
    """Return whether the time between two events is at least the time in which the work between them was not done."""
    first, last = _timing_events(device)
    x = torch.ones(1000, device=device)
    first.record()
    first.synchronize()
    begin = time.perf_counter()
    for _ in range(50):
        x.mul_(2).div_(2)
    not_done = time.perf_counter()
    last.record()
    while (now := time.perf_counter()) < begin + PATIENCE and not last.query():
        not_done = now
    last.synchronize()
    return bool(first.elapsed_time(last) / 1000 >= 0.9 * (not_done - begin) - RESOLUTION)


def _has_fractions(device: str) -> bool:
    """Return whether one of several times is not a whole number of milliseconds."""
    first, last = _timing_events(device)
    passed = []
    for _ in range(TIMES):
        first.record()
        time.sleep(SHORT)
        last.record()
        last.synchronize()
        passed.append(first.elapsed_time(last))
    return any(milliseconds != round(milliseconds) for milliseconds in passed)


@scenario(exact=True, area="devices", accelerators=True)
def times_of_events(device: str) -> Results:
    """Events tell milliseconds between them, of a wait and of work."""

    def timed() -> bool:
        first, last = _around_a_call(device)
        return bool(first.elapsed_time(last) >= 0)

    def backwards() -> bool:
        first, last = _around_a_call(device)
        try:
            return bool(abs(last.elapsed_time(first) + first.elapsed_time(last)) <= 1000 * RESOLUTION)
        except RuntimeError as e:
            raise NotOffered(f"the time from a later event to an earlier one: {first_line(e)}") from e

    return held(device, {
        "timed": timed, "milliseconds": partial(_is_time_of_wait, device),
        "time_of_work": partial(_is_time_of_work, device), "fractions": partial(_has_fractions, device),
        "backwards": backwards,
    })  # fmt: skip


@scenario(exact=True, area="memory", accelerators=True)
def statistics_add_up(device: str) -> Results:
    """``memory_allocated`` counts a tensor while it lives, and the peak stays until it is reset."""
    return held(device, CountedMemory(device).properties)


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def forked_process(device: str) -> Results:
    """A process that is forked after the device was used raises an error, or computes what its parent does.

    What it has of its parent it may let go of.
    """

    def computes() -> bool:
        torch.ones(4, device=device).sum().item()
        return _ends_well(lambda: torch.ones(4, device=device).sum().item() == 4)

    def lets_go() -> bool:
        kept = [torch.ones(4, device=device), torch.ones(1 << 20, device=device)]
        torch.cat(kept).sum().item()

        def free() -> bool:
            kept.clear()
            return True

        return _ends_well(free) and len(kept) == 2

    return held(device, {"computes": computes, "lets_go": lets_go})


def _ends_well(work: Callable[[], bool]) -> bool:
    """Return whether a forked process ends in time, and its work raises an error or returns true.

    Raises NotOffered without ``os.fork``.
    """
    if not hasattr(os, "fork"):
        raise NotOffered("os.fork")
    child = os.fork()
    if child == 0:
        right = True
        with suppress(Exception):  # an error is right, too
            right = work()
        os._exit(0 if right else 1)
    limit = TimeLimit(child, PATIENCE)
    while not limit.is_exceeded():
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


#: Questions about devices of a type that torch answers without using a device.
_QUESTIONS: dict[str, Callable[[str], object]] = {
    "torch.accelerator.is_available": lambda _: torch.accelerator.is_available(),
    "torch.accelerator.device_count": lambda _: torch.accelerator.device_count(),
    "is_available": lambda kind: getattr(torch, kind).is_available(),
    "device_count": lambda kind: getattr(torch, kind).device_count(),
}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def questions_initialize_nothing(device: str) -> Results:
    """A process that asks whether there are devices, and how many, has not initialized one.

    It gets the answer. A tensor on the device initializes it, and changes no answer.
    """
    kept = [f"answer of {name}" for name in _QUESTIONS]
    if device == "cpu":
        return dict.fromkeys((*_QUESTIONS, *kept, "initialized by a tensor"), torch.tensor(True))
    found = results_of(device, _uninitialized_behind, [(device, name) for name in _QUESTIONS])
    results = {name: each["uninitialized"] for name, each in zip(_QUESTIONS, found, strict=True)}
    results |= {name: each["same answer"] for name, each in zip(kept, found, strict=True)}
    return results | {"initialized by a tensor": found[0]["initialized by a tensor"]}


def _uninitialized_behind(device: str, question: str) -> Results:
    """Ask a question in this new process before and after a tensor is made on the device.

    Return whether the question leaves the device uninitialized, whether the tensor initializes it, and whether both
    answers are the same.
    """
    initialized = named(module_of(device), "is_initialized")
    if initialized():
        raise NotOffered("a new process in which the device is not initialized")
    kind = torch.device(device).type
    answer = _QUESTIONS[question](kind)
    before = initialized()
    torch.ones(1, device=device)
    return {
        "uninitialized": torch.tensor(not before), "initialized by a tensor": torch.tensor(bool(initialized())),
        "same answer": torch.tensor(answer == _QUESTIONS[question](kind)),
    }  # fmt: skip


@scenario(exact=True, area="memory", accelerators=True)
def out_of_memory(device: str) -> Results:
    """An allocation that cannot fit raises ``OutOfMemoryError``, leaves nothing behind, and the device goes on."""

    def raised() -> RuntimeError | None:
        try:
            torch.empty(1 << 60, dtype=torch.uint8, device=device)
        except RuntimeError as e:
            return e.with_traceback(None)
        return None

    def refused() -> bool:
        return raised() is not None and bool(torch.ones(3, device=device).sum().item() == 3)

    def nothing_left() -> bool:
        allocated = named(module_of(device), "memory_allocated")
        of = unless_first(device)
        before = allocated(*of)
        return refused() and allocated(*of) == before

    def of_its_type() -> bool:
        return isinstance(raised(), torch.OutOfMemoryError)

    return held(device, {"refused": refused, "nothing_left": nothing_left, "of_its_type": of_its_type})
