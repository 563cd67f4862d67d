"""Time limits of processes, on machines where many processes wait for a processor."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

_MOST = 20  # a process that waits for a processor may take this many times its limit


class TimeLimit:
    """The seconds that a process may take from now on.

    In the second half, the time for which the process waits for a processor does not count. On a busy machine, this is
    most of its time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self.seconds = seconds
        self._began = time.monotonic()
        self._before: dict[int, float] | None = None
        self._waited: dict[int, float] = {}

    @property
    def left(self) -> float:
        """The seconds until the limit, without regard to waiting for a processor."""
        return max(self._began + self.seconds - time.monotonic(), 0.0)

    def is_exceeded(self) -> bool:
        """Return whether the process has exceeded the limit, or has taken ``_MOST`` times the limit including waiting.

        Waiting is measured from the first call in the second half on.
        """
        taken = time.monotonic() - self._began
        if taken < self.seconds / 2:
            return False
        self._waited |= waited_for_processor(self._pid)
        if self._before is None:
            self._before = dict(self._waited)
        waited = sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._waited.items())
        return taken - waited > self.seconds or taken > _MOST * self.seconds


def waited_for_processor(pid: int) -> dict[int, float]:
    """Return the seconds for which a process and each descendant waited for a processor, {} if the system lacks them.

    https://docs.kernel.org/scheduler/sched-stats.html: the second number of ``schedstat``, of a process's first thread.
    """
    found: dict[int, float] = {}
    left = [pid]
    while left:
        each = left.pop()
        with suppress(OSError, ValueError, IndexError):
            found[each] = int(Path(f"/proc/{each}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
            for thread in Path(f"/proc/{each}/task").iterdir():
                left += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found
