"""Resource usage of this process."""

from __future__ import annotations

import resource


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
