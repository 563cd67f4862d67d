"""The time limit of a process: one that hangs exceeds it, one that waits for a processor does not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from conformance.support import time_limits
from conformance.support.time_limits import TimeLimit, waited_for_processor


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel counts no waiting")  # noqa: PTH110
def test_the_time_of_waiting_is_that_of_the_process_and_its_children() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = waited_for_processor(os.getpid())
        assert {os.getpid(), child.pid} <= found.keys()
        assert all(seconds >= 0 for seconds in found.values())
    assert waited_for_processor(child.pid) == {}


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel counts no waiting")  # noqa: PTH110
def test_a_child_that_another_thread_started_is_one_of_the_process() -> None:
    started, found = threading.Event(), threading.Event()
    children: list[int] = []

    def start() -> None:
        with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
            children.append(child.pid)
            started.set()
            found.wait()

    thread = threading.Thread(target=start)
    thread.start()
    started.wait()
    try:
        assert children[0] in waited_for_processor(os.getpid())
    finally:
        found.set()
        thread.join()


class Waiting:
    """A fake process that waits for a processor for ``share`` of the time, and waited for an hour before."""

    def __init__(self, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time_limits, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(time_limits, "waited_for_processor", lambda pid: {pid: 3600 + share * self.now})


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Waiting]:
    return lambda share: Waiting(share, monkeypatch)


def exceeded_after(process: Waiting, limit: TimeLimit) -> float:
    began = process.now
    while not limit.is_exceeded():
        process.now += 1
    return process.now - began


def test_a_process_that_never_waits_has_exactly_its_limit(waiting: Callable[[float], Waiting]) -> None:
    process = waiting(0.0)
    assert exceeded_after(process, TimeLimit(1, 10.0)) == 11


def test_a_process_that_waits_for_most_of_the_time_has_as_much_more(waiting: Callable[[float], Waiting]) -> None:
    process = waiting(0.9)
    assert exceeded_after(process, TimeLimit(1, 10.0)) == 56  # 5 s, then 5 s of work while it waits nine tenths


def test_a_process_that_always_waits_has_many_times_its_limit_and_no_more(
    waiting: Callable[[float], Waiting],
) -> None:
    process = waiting(1.0)
    assert exceeded_after(process, TimeLimit(1, 10.0)) == 201


def test_what_is_left_is_never_below_zero(waiting: Callable[[float], Waiting]) -> None:
    process = waiting(0.0)
    limit = TimeLimit(1, 10.0)
    process.now += 4
    assert limit.left == 6
    process.now += 40
    assert limit.left == 0
