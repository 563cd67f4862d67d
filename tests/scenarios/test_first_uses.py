"""Threads that all make the first use of a device at once: an initialization without a lock is found."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from conformance.scenarios import at_once, first_uses
from conformance.scenarios.model import NotOffered, Results

# The switch interval stays changed, and a thread may wait forever.
pytestmark = pytest.mark.forked


def right(names: list[str]) -> list[bool]:
    return [bool(one) for one in first_uses.work_at_once("cpu", names).values() if isinstance(one, torch.Tensor)]


def waits(_: str) -> bool:
    time.sleep(60)
    return True


def test_threads_that_all_get_what_one_gets_are_right() -> None:
    assert right(["tensor", "copy", "load", "gradient", "seed", "counts"]) == [True] * 6


def test_a_device_that_calls_itself_initialized_before_it_is_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first, all_have_asked, done = threading.Lock(), threading.Barrier(4), threading.Event()

    def initialized(_: str) -> bool:
        begins, found = first.acquire(blocking=False), done.is_set()
        all_have_asked.wait()
        if begins:
            done.set()
        return begins or found

    monkeypatch.setitem(first_uses.FIRST, "tensor", initialized)
    assert sorted(right(["tensor"] * 4)) == [False] * 3 + [True]


def test_the_error_of_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(first_uses.FIRST, "stream", lambda _: bool(1 / 0))
    with pytest.raises(ZeroDivisionError):
        right(["tensor", "stream"])


def test_threads_that_wait_for_each_other_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "PATIENCE", 0.2)
    monkeypatch.setitem(first_uses.FIRST, "stream", waits)
    with pytest.raises(RuntimeError, match="2 threads have not ended a step"):
        right(["tensor", "stream"])


def test_what_one_thread_does_not_get_is_asked_of_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    asked = list[list[str]]()

    def results_of(device: str, work: object, arguments: list[tuple[str, list[str]]]) -> list[Results]:
        asked.append(arguments[0][1])
        return [{str(i): torch.tensor(True) for i in range(len(arguments[0][1]))}]

    monkeypatch.setattr(first_uses, "results_of", results_of)
    monkeypatch.setitem(first_uses.FIRST, "stream", lambda _: bool(1 / 0))
    found = first_uses.first_uses_at_once("npu:0")
    assert found.keys() == first_uses.first_uses_at_once("cpu").keys()
    assert {str(one) for one in found.values() if isinstance(one, NotOffered)} == {
        "stream in one thread: division by zero"
    }
    assert not any("stream" in names for names in asked)
