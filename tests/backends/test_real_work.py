"""Fills that keep a stream busy, on a device with a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from conformance.backends.real_work import RealWork


class Fills(TorchDispatchMode):
    """A mode that lists the bytes of each fill."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.fill_.Scalar:
            self.sizes.append(args[0].numel())
        return func(*args, **(kwargs or {}))


@pytest.fixture
def fills() -> Iterator[Fills]:
    with Fills() as found:
        yield found


class Device:
    """A device that runs the submitted fills when it is waited for. It takes ``seconds`` per MiB."""

    def __init__(self, seconds: float, fills: Fills) -> None:
        self.now = 0.0
        self._seconds, self._fills, self._done = seconds, fills, 0

    def synchronize(self) -> None:
        self.now += sum(self._fills.sizes[self._done :]) / (1 << 20) * self._seconds
        self._done = len(self._fills.sizes)

    def clock(self) -> float:
        return self.now


def test_a_device_that_works_behind_the_call_is_busy_for_about_as_long_as_is_wanted(fills: Fills) -> None:
    device = Device(1e-3, fills)
    work = RealWork("cpu", device.synchronize, device.clock)
    work.submit(3000)
    assert fills.sizes == [1 << 20] * (5 + 3)  # five fills measure the device
    work.submit(3000)
    assert fills.sizes == [1 << 20] * (5 + 3 + 3)


def test_a_fast_device_fills_a_larger_buffer(fills: Fills) -> None:
    device = Device(1e-4, fills)
    RealWork("cpu", device.synchronize, device.clock).submit(3000)
    assert fills.sizes == [1 << 20] * 5 + [4 << 20] * (5 + 8)


def test_a_device_that_is_done_when_the_call_returns_gets_no_work(fills: Fills) -> None:
    ticks = count()
    work = RealWork("cpu", lambda: None, lambda: next(ticks) * 1e-3)
    work.submit(3000)
    work.submit(3000)
    assert len(fills.sizes) == 5


def test_nothing_is_measured_where_no_delay_is_wanted(fills: Fills) -> None:
    RealWork("cpu", lambda: None).submit(0)
    assert not fills.sizes


def test_a_device_that_cannot_fill_is_left_alone() -> None:
    def broken() -> None:
        raise RuntimeError("no such stream")

    work = RealWork("cpu", broken)
    work.submit(3000)
    work.submit(3000)
