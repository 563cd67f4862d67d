"""Runs of stretches of cases, in order, in a fresh process that is closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from conformance.running.child import Child, Death, Hang
from conformance.running.crash_log import CrashLog, parse
from conformance.running.endings import broken
from conformance.running.protocol import Stretch, checks_request
from conformance.vocabulary import CellId

# Seconds for a crash whose stack is printed. Printing may hang if the heap is damaged.
STACK_TIMEOUT = 20.0

Reply = dict[str, Any] | Death | Hang


class FreshRuns:
    """Runs in fresh processes. ``fresh`` starts a process. ``timeout`` returns the seconds that a cell may take."""

    def __init__(self, fresh: Callable[[], Child], timeout: Callable[[CellId], float]) -> None:
        self._fresh = fresh
        self._timeout = timeout

    def reply(self, ran: Stretch, *, settled: bool = False) -> dict[str, Any] | None:
        """Return the reply to a stretch, None if the process dies or hangs.

        ``settled``: see :meth:`Stretch.request`.
        """
        (reply,) = self._replies([(ran.request(settled=settled), self._timeout(ran.cell))])
        return reply if isinstance(reply, dict) else None

    def dies(self, order: Sequence[Stretch]) -> bool:
        """Return whether the process dies in the last stretch, and in none before it."""
        replies = self._replies((stretch.request(), self._timeout(stretch.cell)) for stretch in order)
        last = replies[-1]
        return len(replies) == len(order) and isinstance(last, Death) and not broken(last)

    def differs(self, order: Sequence[Stretch], check: str) -> bool:
        """Return whether a check fails in the last stretch, which is one case."""
        *before, case = order
        requests = [*(stretch.request() for stretch in before), checks_request(case.cell, case.first)]
        *_, last = self._replies((request, self._timeout(case.cell)) for request in requests)
        return isinstance(last, dict) and check in last["checks"]

    def crash(self, order: Sequence[Stretch]) -> CrashLog:
        """Return the log of the process with its native stack if it dies or hangs, else an empty log."""

        def seconds(stretch: Stretch) -> float:
            return min(self._timeout(stretch.cell), STACK_TIMEOUT)

        requests = ((stretch.request(stacks=True), seconds(stretch)) for stretch in order)
        *_, last = self._replies(requests, kill=True)
        return CrashLog("") if isinstance(last, dict) else parse(last.log)

    def _replies(self, requests: Iterable[tuple[Any, float]], *, kill: bool = False) -> list[Reply]:
        """Return the replies to these requests, each with its limit in seconds, until the process ends."""
        found: list[Reply] = []
        child = self._fresh()
        try:
            for request, seconds in requests:
                found.append(child.ask(request, seconds))
                if not isinstance(found[-1], dict):
                    break
        finally:
            child.kill() if kill else child.close()
        return found
