"""A mode that compares each ATen call of a program with CPU and checks memory, until the first failure."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.calls import judging
from conformance.calls.capture import Capture, touches
from conformance.calls.model import Call
from conformance.corpus.model import NotStorable
from conformance.explain import mismatch_text
from conformance.inventory import overload_of
from conformance.judging import device_memory, oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Side
from conformance.records import Mismatch
from conformance.torch_versions import WatchingMode, without_modes
from conformance.triage.evidence import Found
from conformance.triage.given_twice import GivenTwice
from conformance.triage.history import History

INTERNAL = ("/torch/", "/conformance/", "<frozen", "/runpy.py")


class Watch(WatchingMode):
    """A mode that calls ``before`` before each call on the device, and ``stop`` after a call that fails.

    These are called as ``before(index, op, call)`` and ``stop(found, call)``. ``call`` is None if its arguments cannot
    be recorded; then only memory is checked. A ``history`` records each call before it is made.
    """

    def __init__(
        self,
        backend: Capabilities,
        before: Callable[[int, str, Call | None], None],
        stop: Callable[[Found, Call | None], None],
        history: History | None = None,
    ) -> None:
        super().__init__()
        self._backend, self._before, self._stop, self._history = backend, before, stop, history
        self._device = torch.device(backend.device)
        self._given = GivenTwice(self._device)
        self.ops = 0
        self.unjudged = 0

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run and compare one call."""
        name = overload_of(func)
        if not name or not touches(self._device, (args, kwargs)):
            if self._history and not name and touches(self._device, (args, kwargs)):
                self._history.miss(str(func))
            return func(*args, **kwargs)
        index = self.ops
        self.ops += 1
        with without_modes(), torch.no_grad():
            call, side = self._take(func, args, kwargs, index)
            self._keep(name, call, side)
        self._before(index, name, call)
        actual = oracle.call(func, side, synchronize=self._backend.synchronize)
        with without_modes(), torch.no_grad():
            self._look(index, name, call, actual)
        if self._history and call is not None:
            self._history.made(actual)
        if actual.error is not None:
            raise actual.error
        return actual.returned

    def _take(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], index: int) -> tuple[Call | None, Side]:
        try:
            return Capture(self._device).take(func, args, kwargs, f"call.{index}")
        except NotStorable:
            self.unjudged += 1
            return None, Side(self._device, [], tuple(args), dict(kwargs))

    def _keep(self, name: str, call: Call | None, side: Side) -> None:
        if self._history and call is not None:
            self._history.take(call, side)
        elif self._history:
            self._history.miss(name)

    def _look(self, index: int, name: str, call: Call | None, actual: CallOutcome) -> None:
        wrong = differences(self._backend, call, actual, self._given.look(f"{name} (call {index})", actual))
        if wrong:
            where, functorch = _caller()
            text = "; ".join(map(mismatch_text.text, wrong))
            self._stop(Found(index, name, wrong[0].check.value, text, where, functorch), call)


def differences(
    backend: Capabilities, call: Call | None, actual: CallOutcome, given_twice: list[Mismatch]
) -> list[Mismatch]:
    """Return the damage that a call did to memory; if there is none, its differences from CPU."""
    wrong = device_memory.damage(backend, actual) or given_twice
    return wrong if wrong or call is None else judging.made(call, backend, actual).mismatches


def _caller() -> tuple[str, bool]:
    """Return the innermost line outside torch and the suite, and whether functorch is among the callers."""
    frames = traceback.extract_stack()
    return place_of(frames), any("/torch/_functorch/" in f.filename for f in frames)


def place_of(frames: traceback.StackSummary) -> str:
    """Return the innermost line outside torch and the suite, "" if there is none."""
    own = [f for f in frames if not any(part in f.filename for part in INTERNAL)]
    return f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}" if own else ""
