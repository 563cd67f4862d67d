"""Waiting for file descriptors."""

from __future__ import annotations

import select
from collections.abc import Iterable


def ready(descriptors: Iterable[int], seconds: float | None) -> list[int]:
    """Wait until there is something to read, or an end, for at most ``seconds``; None: without a limit.

    Return these descriptors. They may be any numbers: ``select.select()`` takes none beyond 1023.
    """
    polled = select.poll()
    for descriptor in descriptors:
        polled.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in polled.poll(None if seconds is None else 1000 * seconds)]
