"""The bring-up gate in children: the primitives that every comparison needs, and the numbers that the device keeps."""

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
    """Asks a device before its first cell. ``child``: the last child, if a cell can run in it.

    ``fresh`` makes a child that does without what is known to be broken. ``timeout``: seconds of each question.
    """

    def __init__(self, work: Work, children: Children, fresh: Callable[[], Child], timeout: float) -> None:
        self._work = work
        self._children = children
        self._fresh = fresh
        self._timeout = timeout
        self.child: Child | None = None

    def primitives(self) -> tuple[GateFailure | None, dict[str, GateFailure]]:
        """Return the failure of a primitive without which no cell can be judged, or else those of others by name."""
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
        """Return the dtypes whose subnormal numbers the device keeps. No cell runs in a child that was asked."""
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
