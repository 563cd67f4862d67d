"""Further references for values, for device results that differ from CPU's: other CPU calls, torch's decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from conformance.contexts import Context
from conformance.judging import altered, later_torch, oracle
from conformance.judging.later_torch import LATER
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.other_references import OtherReferences
from conformance.judging.outcomes import Comparison, nowhere
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import Twins
from conformance.plan.case import Case
from conformance.torch_versions import decomposition_of

LAYOUT = "the CPU's own values depend on how its arguments lie in memory, and the device has those of another layout"
HELD = "CPU's values depend on what an out= argument held before, and the device has those of one that held zeros"
QUIETED = "C leaves open what a signalling NaN does, and the device gives what CPU gives for quiet ones"
FLUSHED = "a device may flush subnormal numbers to zero, and this one gives what CPU gives for zeros in their place"
DECOMPOSED = "torch's own decomposition of the op gives other values than CPU's kernel, and the device has those"


class OtherValues:
    """The other references for the values of one overload's results."""

    def __init__(
        self, call: Caller, twins: Twins, criteria: Criteria, comparison: Comparison, context: Context
    ) -> None:
        self._call = call
        self._twins = twins
        self._criteria = criteria
        self._comparison = comparison
        self._context = context

    def explain(
        self, case: Case, expected: CallOutcome, actual: Callable[[], CallOutcome], others: OtherReferences
    ) -> str:
        """Return why the device's values are right although CPU's call gives others; "" if they are not right.

        Each element has to agree with CPU's call, or with another reference that differs from that call. For
        arguments that share memory the right values are undefined, so it is enough that another call of CPU
        disagrees.
        """
        wrong: list[torch.Tensor] | None = None
        for reason, other, further in self._references(case):
            if other.error is not None or len(other.leaves) != len(expected.leaves):
                continue
            if self._comparison.same_values(other, expected):
                continue
            if case.shared:
                return reason
            if wrong is None:
                device = actual()
                wrong = self._comparison.wrong_values(expected, device, others)
                if nowhere(wrong):
                    return ""
            # A reference that leaves an argument as it was is no reference for an argument that CPU's call wrote.
            by_other = self._comparison.wrong_values(other, device, further, left=True)
            if wrong is None or by_other is None:
                continue
            wrong = [a & b for a, b in zip(wrong, by_other, strict=True)]
            if not any(bool(mask.any()) for mask in wrong):
                return reason
        return ""

    def _references(self, case: Case) -> Iterator[tuple[str, CallOutcome, OtherReferences | None]]:
        """Yield (reason, outcome, further references) of each call whose values may be right too.

        If dense arguments replace strided ones, the wider and the perturbed calls get dense arguments too.

        CPU's kernel over ``out=`` arguments that held zeros is right too: an ``out=`` argument has no value before
        the call.

        CPU's vector loops run over contiguous tensors only, and may treat NaN and infinities differently from its
        loops over single elements.

        The maximum of a number and a signalling NaN is the number in some math libraries and NaN in others. An op
        that moves numbers has to leave such a NaN as it is.

        A device that may flush subnormal numbers may flush its arguments: comparisons and slopes jump at zero.
        """
        strided = bool(case.shared) or any(p.layout != "contiguous" for p in case.placements)
        if strided:
            further = None if case.shared else OtherReferences(case, altered.DenseTwins(self._twins), self._call.op)
            yield LAYOUT, self._call(altered.dense(self._twins, case)), further
            yield LAYOUT, self._call(altered.dense(self._twins, case, torch.preserve_format)), None
        yield LAYOUT, self._call(altered.spaced(self._twins, case)), None
        if any(slot.written and not slot.pool for slot in case.sample.tensors) and not case.shared:
            yield HELD, self._call(altered.zeroed(self._twins, case)), None
        quieted = None if self._criteria.facts.moves else altered.quieted(self._twins, case)
        if quieted is not None:
            yield QUIETED, self._call(quieted), None
        kept = self._criteria.subnormals
        flushed = None if self._criteria.facts.moves else altered.flushed(self._twins, case, kept)
        if flushed is not None:
            yield FLUSHED, self._call(flushed), None
        of_later = later_torch.outcome(case, self._twins, self._context)
        if of_later is not None:
            yield LATER, of_later, None
        decomposition = decomposition_of(self._call.op)
        if decomposition is not None and not self._criteria.random and not case.shared:
            yield DECOMPOSED, oracle.call(decomposition, altered.dense(self._twins, case)), None
