"""Waiting for file descriptors."""

from __future__ import annotations

import select
from collections.abc import Iterable


def ready(descriptors: Iterable[int], seconds: float | None) -> list[int]:
    """Return the descriptors that can be read or are at their end. Wait for at most ``seconds``; None: without a limit.

    Descriptors may be any numbers, unlike those of ``select.select()``, which takes none above 1023.
    """
    polled = select.poll()
    for descriptor in descriptors:
        polled.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in polled.poll(None if seconds is None else 1000 * seconds)]
