"""The reference NPU: importing this module makes ``torch.device("npu")`` exist, and touches no device."""

from __future__ import annotations

import atexit

from refnpu._loader import check_sanitizers, check_torch_version

check_torch_version()  # before anything that imports the extension
check_sanitizers()

from refnpu import _C, npu  # noqa: E402  # see above
from refnpu._ending import finish_gradients  # noqa: E402
from refnpu._steps import donate, mark_step, save  # noqa: E402

npu.install()
atexit.register(finish_gradients)


def counters() -> dict[str, dict[str, int]]:
    """Return the calls by overload since :func:`reset_counters`: ``{"native": {...}, "fallback": {...}}``."""
    return {"native": _C.native_counts(), "fallback": _C.fallback_counts()}


def reset_counters() -> None:
    """Set every overload's count to zero. The totals of :func:`route_totals` do not change."""
    _C.reset_counts()


def route_totals() -> tuple[int, int]:
    """Return the number of (native, fallback) calls since the process started. This is cheap."""
    return _C.route_totals()


__all__ = ["counters", "donate", "mark_step", "npu", "reset_counters", "route_totals", "save"]
