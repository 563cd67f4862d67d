"""The two readings of a block, and the order of blocks, with a clock that calls move."""

from __future__ import annotations

import pytest
import torch

from conformance.perf import clock
from conformance.perf.clock import Timed, alternate


class Device:
    """A device with a fake clock: a call returns after one second, and the wait for it takes nine more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.queued = 0
        self.blocks: list[str] = []
        monkeypatch.setattr(clock, "perf_counter", lambda: self.now)

    def submit(self) -> None:
        self.now += 1
        self.queued += 1

    def wait(self) -> None:
        self.blocks.append("device")
        self.now += 9 * self.queued
        self.queued = 0

    def on_cpu(self) -> None:
        self.now += 2

    def done(self) -> None:
        self.blocks.append("cpu")


def test_the_host_s_time_ends_before_the_device_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    timed = Timed(device.submit, device.wait)
    timed.calls = 4
    assert timed.block() == pytest.approx((1, 10))
    assert timed.block() == pytest.approx((1, 10))


def test_work_that_was_queued_before_a_block_is_not_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    timed = Timed(device.submit, device.wait)
    device.queued = 1000
    assert timed.block() == pytest.approx((1, 10))


def test_a_block_has_as_many_calls_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    timed = Timed(device.submit, device.wait)
    timed.settle(200)
    assert timed.calls == 20
    timed.settle(1)
    assert timed.calls == 1


def test_blocks_of_both_sides_alternate_and_take_turns_to_be_first(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    sides = Timed(device.submit, device.wait), Timed(device.on_cpu, device.done)
    for side in sides:
        monkeypatch.setattr(side, "settle", lambda _: None)
    found = alternate(*sides, seconds=1, blocks=4)
    assert (found.device, found.host, found.cpu) == ((10,) * 4, (1,) * 4, (2,) * 4)
    readings = 4  # per block: two for its warm-up calls, two for its own calls
    order = [device.blocks[i] for i in range(0, len(device.blocks), readings)]
    assert order == ["device", "cpu", "cpu", "device", "device", "cpu", "cpu", "device"]


def test_calls_are_timed_with_the_threads_that_the_process_has_set() -> None:
    before, seen = torch.get_num_threads(), set[int]()
    torch.set_num_threads(before + 1)
    try:
        timed = Timed(lambda: seen.add(torch.get_num_threads()), lambda: None)
        timed.settle(1e-4)
        timed.block()
    finally:
        torch.set_num_threads(before)
    assert seen == {before + 1}
