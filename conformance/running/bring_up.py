"""The bring-up gate in children: tries the primitives that comparisons need, and the device's subnormal numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.records import GateFailure
from conformance.running import crash_log
from conformance.running.child import Child, Death, Hang
from conformance.running.isolation import Children
from conformance.running.protocol import Tried, Work, keeps_request, primitive_request
from conformance.support.signals import signal_name


class BringUp:
    """The requests to a device before its first cell. ``child``: the last child, if a cell can run in it.

    ``fresh`` starts a child that does without the known broken primitives. ``timeout``: seconds for each request.
    """

    def __init__(self, work: Work, children: Children, fresh: Callable[[], Child], timeout: float) -> None:
        self._work = work
        self._children = children
        self._fresh = fresh
        self._timeout = timeout
        self.child: Child | None = None

    def primitives(self) -> tuple[GateFailure | None, dict[str, GateFailure]]:
        """Return the failure of a primitive that all cells need, else None and the failures of others by name."""
        limits: dict[str, GateFailure] = {}
        for index, primitive in enumerate(self._work.primitives()):
            self.child = self.child or self._fresh()
            self._children.progress.note(0, "")
            reply = self.child.ask(primitive_request(index), self._timeout)
            if not isinstance(reply, dict):
                self._drop()
            failure = _failure(primitive, reply)
            if failure and primitive.blocks:
                self._drop()
                return failure, {}
            if failure:
                limits[primitive.name] = failure
        if limits:
            self._drop()
        return None, limits

    def subnormals(self) -> tuple[str, ...]:
        """Return the dtypes whose subnormal numbers the device keeps. The children that are asked run no cells."""
        kept = []
        for dtype in self._work.subnormal_dtypes():
            self.child = self.child or self._fresh()
            reply = self.child.ask(keeps_request(dtype), self._timeout)
            if isinstance(reply, dict) and reply["keeps"]:
                kept.append(dtype)
            else:
                self._drop()  # it may have died, or raised an error that later calls meet again
        if kept:
            self._drop()
        return tuple(kept)

    def _drop(self) -> None:
        if self.child:
            self.child.close()
            self.child = None


def _failure(primitive: Tried, reply: dict[str, Any] | Death | Hang) -> GateFailure | None:
    if isinstance(reply, dict):
        return GateFailure(reply["broken"]) if reply["broken"] else None
    how = f"hung for {reply.seconds:g} s" if isinstance(reply, Hang) else f"died: {signal_name(reply.status)}"
    said = crash_log.parse(reply.log)
    details = "\n".join(filter(None, (said.message, *said.stack, *said.python)))
    return GateFailure(f"{primitive.text}: the process that tried it {how}", details)
