"""The reference NPU: importing this module makes ``torch.device("npu")`` exist."""

from __future__ import annotations

import torch

from refnpu._loader import load

_C = load()

from refnpu import npu  # noqa: E402  # needs the extension

npu.install()


def counters() -> dict[str, dict[str, int]]:
    """Calls by overload since :func:`reset_counters`: ``{"native": {...}, "fallback": {...}}``."""
    result: dict[str, dict[str, int]] = _C.counters()
    return result


def reset_counters() -> None:
    """Set every overload's count to zero; the totals that :func:`route_totals` gives go on."""
    _C.reset_counters()


def route_totals() -> tuple[int, int]:
    """(native, fallback) calls since the process started; cheap."""
    result: tuple[int, int] = _C.route_totals()
    return result


__all__ = ["counters", "npu", "reset_counters", "route_totals", "torch"]
