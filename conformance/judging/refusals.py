"""CPU's refusals of calls that a device may accept, or refuse by another error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance.contexts import Context
from conformance.judging import altered
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.outcomes import Comparison
from conformance.judging.twins import CPU, Twins
from conformance.plan.case import Case
from conformance.records import Mismatch
from conformance.torch_versions import without_onednn
from conformance.vocabulary import Check

ONEDNN = "oneDNN refuses the call on this machine, and the device does what CPU does without it"
REFUSED = "CPU refuses how an argument lies in memory, and the device gives what CPU gives for one without gaps"


class Refusals:
    """CPU's refusals of calls of one overload."""

    def __init__(self, call: Caller, twins: Twins, comparison: Comparison, context: Context) -> None:
        self._call = call
        self._twins = twins
        self._comparison = comparison
        self._context = context

    def explain(
        self, case: Case, expected: CallOutcome, mismatches: Sequence[Mismatch], actual: Callable[[], CallOutcome]
    ) -> str:
        """Return why the device is right although it does not refuse the call as CPU does; "" if it is not right."""
        if self._does_without_onednn(case, actual()):
            return ONEDNN
        if self._does_as_if_dense(case, actual()) or self._raises_as_if_dense(case, expected, mismatches, actual):
            return REFUSED
        return ""

    def _does_without_onednn(self, case: Case, actual: CallOutcome) -> bool:
        """Return whether CPU without oneDNN accepts the call and gives the device's values."""
        if actual.error is not None:
            return False
        with without_onednn(), self._context.around():
            expected = self._call(self._twins.side(case, CPU))
        return expected.error is None and self._comparison.same_values(expected, actual)

    def _does_as_if_dense(self, case: Case, actual: CallOutcome) -> bool:
        """Return whether CPU accepts the call with dense arguments, and the device gives the values of that call.

        Dense arguments are contiguous, or in the order of their strides, as a fallback copies them. Some kernels of
        CPU take any argument for a contiguous one.

        Like CPU, a device must refuse calls without a defined result, such as writes to shared memory, and views that
        strides do not allow.
        """
        placed = list(zip(case.sample.tensors, case.placements, strict=True))
        several = any(slot.written and placement.several_indices for slot, placement in placed)
        if actual.error is not None or case.shared or several or _gives_a_view(self._call.op):
            return False
        if all(placement.layout == "contiguous" for _, placement in placed):
            return False
        orders = (torch.contiguous_format, torch.preserve_format)
        outcomes = (self._call(altered.dense(self._twins, case, order)) for order in orders)
        return any(o.error is None and self._comparison.same_values(o, actual) for o in outcomes)

    def _raises_as_if_dense(
        self, case: Case, expected: CallOutcome, mismatches: Sequence[Mismatch], actual: Callable[[], CallOutcome]
    ) -> bool:
        """Return whether the device raises the same type of error as CPU for contiguous arguments.

        There are two reasons to refuse such a call, and it is not defined which one is found first.
        """
        dense = all(placement.layout == "contiguous" for placement in case.placements)
        if case.shared or dense or {m.check for m in mismatches} != {Check.ERROR_PARITY}:
            return False
        device = actual()
        if device.error is None or type(device.error) is type(expected.error):
            return False
        return type(self._call(altered.dense(self._twins, case)).error) is type(device.error)


def _gives_a_view(op: Callable[..., Any]) -> bool:
    """Return whether the op's schema says that a result shares memory with an argument that it does not write."""
    schema = getattr(op, "_schema", None)
    return schema is not None and any(r.alias_info and not r.alias_info.is_write for r in schema.returns)
