"""The calls of a case on the device, in the case's context. Each call gets newly sent arguments."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import torch

from conformance.ambient import Ambient
from conformance.backends import Capabilities
from conformance.contexts import Context
from conformance.judging import device_memory, kernels, oracle
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.twins import CPU, Twins
from conformance.plan.case import Case
from conformance.records import Mismatch


class DeviceCalls:
    """The calls of one op on the device. ``seed``: the seed of its draws; None for an op that does not draw."""

    def __init__(
        self, op: Callable[..., Any], twins: Twins, backend: Capabilities, context: Context, seed: int | None,
    ) -> None:  # fmt: skip
        self.device = context.device(torch.device(backend.device))
        self.seed = seed
        self._op = op
        self._twins = twins
        self._backend = backend
        self._context = context
        self._call = Caller(op, seed)

    @property
    def raw_ns(self) -> int:
        """Nanoseconds inside the calls since :meth:`prepare`."""
        return self._call.raw_ns

    def prepare(self, case: Case) -> None:
        """Take the op from the context, for the calls of a case."""
        self._call.raw_ns = 0
        self._call.op = self._in_context(self._op, case)

    def _in_context(self, op: Callable[..., Any], case: Case) -> Callable[..., Any]:
        return self._context.on_device(op, case.cell.overload, case.variant, self._backend)

    def over_soiled(self, case: Case, ambient: Ambient | None = None) -> CallOutcome:
        """Make the call over soiled memory, so that unwritten elements hold no result of an earlier call."""
        with self._backend.soiled_memory():
            return self.make(case, ambient=ambient)

    def make(self, case: Case, seed: int | None = None, ambient: Ambient | None = None) -> CallOutcome:
        """Make the call over memory as it is. ``seed`` replaces the usual seed of its draws."""
        with self._context.around():
            side = self._twins.side(case, self.device)
            return self._call(side, seed=seed, synchronize=self._backend.synchronize, ambient=ambient)

    def in_turn(self, case: Case, device: torch.device) -> Iterator[CallOutcome]:
        """Yield the outcomes of call after call, with the same arguments and no seed in between."""
        side = self._twins.side(case, device)
        while True:
            yield oracle.call(self._call.op, side, None, None if device == CPU else self._backend.synchronize)

    def kernels(self, case: Case) -> list[str]:
        """Make the call, and return the operators that run, in order.

        Operators that a context calls besides the op are left out if the context tests the op alone. Damage to memory
        by this call is not reported, because the call before has reported the same damage.
        """
        with self._context.around():
            side = self._twins.side(case, self.device)

            def call(op: Callable[..., Any]) -> CallOutcome:
                return oracle.call(self._in_context(op, case), side, self.seed, self._backend.synchronize)

            if self._context.op_alone:
                found = kernels.names_inside(self._op, call)
            else:
                found = kernels.names(lambda: call(self._op))
        self._backend.verify_memory()
        return found

    def left_again(self, case: Case) -> Mismatch | None:
        """Make two more calls. Return the leak of the second one; None if either leaves the memory in use unchanged.

        Without an adapter, torch's own counts include workspaces that backends allocate on first use. A call may also
        free memory of an earlier call: tensors in reference cycles live until Python's garbage collector runs.
        """
        gc.collect()
        leaked = None
        for _ in range(2):
            before = self._backend.live_memory()
            self.make(case)
            leaked = device_memory.leak(before, self._backend.live_memory())
            if not leaked:
                return None
        return leaked
