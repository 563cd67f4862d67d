"""Device work that keeps a stream busy, for backends that cannot delay the start of work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Bytes of the buffer that is filled: the first size from the smallest up whose fill takes at least _LONG_ENOUGH, or the
# largest size.
_SMALLEST, _LARGEST = 1 << 20, 256 << 20
_LONG_ENOUGH = 300e-6  # seconds
_MOST_FILLS = 64
_ROUNDS = 5  # measurements, of which the fastest counts, because a busy host only makes them slower


class RealWork:
    """Fills of a buffer on a device. The duration of a fill is measured at the first use."""

    def __init__(
        self, kind: str, synchronize: Callable[[], None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """``kind``: the device's type. ``synchronize`` returns when all submitted work is done."""
        self._kind = kind
        self._synchronize = synchronize
        self._clock = clock
        self._buffers: dict[int, torch.Tensor] = {}  # by the index of the device
        self._seconds = -1.0  # duration of a fill; 0: the device is busy no longer than the host; < 0: not measured

    def submit(self, us: int) -> None:
        """Submit fills of about ``us`` microseconds to the current stream of the current device.

        Submit none if a fill is done when its call returns, because then no work can wait behind it.
        """
        if not (us and self._seconds):
            return
        try:
            buffer = self._buffer(_SMALLEST)
            if self._seconds < 0:
                buffer = self._measure(buffer)
            fills = min(math.ceil(us * 1e-6 / self._seconds), _MOST_FILLS) if self._seconds else 0
            for _ in range(fills):
                buffer.fill_(0)
        except Exception:  # noqa: BLE001  # a device without uint8 or fill_ cannot be kept busy
            self._seconds = 0.0

    def _buffer(self, size: int) -> torch.Tensor:
        """Return the buffer of the current device, of at least ``size`` bytes. It is kept, so no other work uses it."""
        import torch

        index = torch.empty(0, dtype=torch.uint8, device=self._kind).device.index
        known = self._buffers.get(index)
        if known is None or known.numel() < size:
            size = max([size, *(b.numel() for b in self._buffers.values())])
            known = self._buffers[index] = torch.empty(size, dtype=torch.uint8, device=self._kind)
            self._synchronize()  # another stream may still read the tensor that had this memory before
        return known

    def _measure(self, buffer: torch.Tensor) -> torch.Tensor:
        """Return a buffer that takes long enough to fill. Measure the fill, and whether the host is free meanwhile."""
        while True:
            took, submitted = min(self._fill(buffer) for _ in range(_ROUNDS))
            if took >= _LONG_ENOUGH or buffer.numel() >= _LARGEST:
                self._seconds = took if submitted < took / 2 else 0.0
                return buffer
            buffer = self._buffer(4 * buffer.numel())

    def _fill(self, buffer: torch.Tensor) -> tuple[float, float]:
        """Return the seconds until a fill is done, and until its call returns."""
        self._synchronize()
        began = self._clock()
        buffer.fill_(0)
        submitted = self._clock() - began
        self._synchronize()
        return self._clock() - began, submitted
