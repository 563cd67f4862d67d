"""The times of blocks of calls on two sides, which take turns. ``torch.utils.benchmark`` runs the blocks."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
from torch.utils.benchmark import Timer

from conformance.perf.model import Round

BLOCKS = 5  # of each side, in a round
_MOST = 1_000_000  # calls in a block


class Clock:
    """A clock for ``Timer`` that waits for the device. Its two readings around a block also give the host's time."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._done = 0.0
        self.host = 0.0  # seconds from the last reading until the calls after it had returned

    def __call__(self) -> float:
        returned = perf_counter()
        self._synchronize()
        self.host = returned - self._done
        self._done = perf_counter()
        return self._done


class Timed:
    """A call that is timed in blocks."""

    def __init__(self, call: Callable[[], object], synchronize: Callable[[], None]) -> None:
        self._clock = Clock(synchronize)
        threads = torch.get_num_threads()  # by default, Timer sets one thread
        self._timer = Timer("call()", globals={"call": call}, timer=self._clock, num_threads=threads)
        self.calls = 1

    def settle(self, seconds: float) -> None:
        """Choose the calls of a block, at least one, so that it takes ``seconds``. Make calls for half as long."""
        took = self._timer.blocked_autorange(min_run_time=seconds / 2).median
        self.calls = max(1, min(_MOST, int(seconds / took)))

    def block(self) -> tuple[float, float]:
        """Time a block. Return the seconds per call until the calls returned, and until their work was done."""
        done = self._timer.timeit(self.calls).median
        return self._clock.host / self.calls, done


def alternate(device: Timed, cpu: Timed, seconds: float, blocks: int = BLOCKS) -> Round:
    """Time blocks of both sides for about ``seconds`` in all, or of one call each. The sides take turns to be first."""
    for timed in (device, cpu):
        timed.settle(seconds / (2 * (blocks + 1)))
    of_device, of_cpu = [], []
    for n in range(blocks):
        if n % 2:
            of_cpu.append(cpu.block())
            of_device.append(device.block())
        else:
            of_device.append(device.block())
            of_cpu.append(cpu.block())
    host, done = zip(*of_device, strict=True)
    return Round(device.calls, host, done, tuple(done for _, done in of_cpu))
