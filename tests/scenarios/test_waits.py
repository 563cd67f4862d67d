"""Waits for a device: a wait that keeps Python's global interpreter lock is found."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import pytest

from conformance.scenarios import waits


def keeps_the_lock(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))  # PyDLL does not release the lock


@pytest.mark.parametrize(("wait", "expected"), [(time.sleep, True), (keeps_the_lock, False)])
def test_a_wait_in_which_no_other_thread_runs_is_found(wait: Callable[[float], None], expected: bool) -> None:
    assert waits.others_run("cpu", 1, lambda _: lambda: wait(2 * waits.LONG)) is expected


def test_a_wait_that_is_short_tells_nothing() -> None:
    assert waits.others_run("cpu", 1, lambda _: lambda: keeps_the_lock(waits.LONG / 10))
    assert waits.others_run("cpu", 0, lambda _: lambda: keeps_the_lock(waits.LONG))
