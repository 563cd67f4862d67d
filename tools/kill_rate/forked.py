"""A hunter whose items are functions, which run in a forked child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from unittest import SkipTest

from conformance.running.child import Child, Death, Hang
from conformance.support.signals import signal_name
from tools.kill_rate.trial import Finding


class Check(NamedTuple):
    """An item: a function that raises for a failure."""

    name: str  # of the kind of check
    run: Callable[[], None]


class ForkedHunter:
    """A hunter that runs each item in a child. ``checks``: the items by name. ``timeout``: seconds for each item."""

    untraced = ()

    def __init__(self, checks: Mapping[str, Check], timeout: float) -> None:
        self.plan = list(checks)
        self._checks = checks
        self._timeout = timeout
        self._child: Child | None = None

    def attempt(self, item: str) -> Finding | None:
        """Call one function in the child. After a death or a timeout the next item gets a new child."""
        self._child = self._child or Child(self._serve)
        reply = self._child.ask(item, self._timeout)
        if isinstance(reply, dict):
            return Finding(self._checks[item].name, item, reply["wrong"]) if reply["wrong"] else None
        self.rest()
        if isinstance(reply, Hang):
            return Finding("timeout", item, f"no end within {reply.seconds:g} s")
        assert isinstance(reply, Death)
        return Finding("crash", item, signal_name(reply.status))

    def rest(self) -> None:
        """End the child."""
        if self._child:
            self._child.close()
            self._child = None

    def _serve(self, item: str) -> dict[str, Any]:
        try:
            self._checks[item].run()
        except SkipTest:
            pass
        except Exception as e:  # noqa: BLE001  # every exception of a broken device is a finding
            return {"wrong": f"{type(e).__name__}: {e}"[:300]}
        return {"wrong": ""}
