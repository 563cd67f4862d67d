"""Further references for strides, for device results whose strides differ from CPU's."""

from __future__ import annotations

from typing import Any

import torch

from conformance.contexts import Context
from conformance.judging import altered, meta, oracle
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.other_references import OtherReferences
from conformance.judging.outcomes import Comparison
from conformance.judging.twins import CPU, Argument, Twins
from conformance.plan.case import Case
from conformance.torch_versions import decomposition_of

DECOMPOSED_STRIDES = "torch's own decomposition of the op gives other strides than CPU's kernel, as the device does"
DENSE_STRIDES = "the strides of CPU's results depend on gaps in its arguments, and the device has those of dense ones"
PREDICTED_STRIDES = "torch's kernel for Meta predicts other strides of a resized out= than CPU's, as the device does"

#: The size and the strides of a tensor.
Strides = tuple[tuple[int, ...], tuple[int, ...]]


class OtherStrides:
    """The other references for the strides of one overload's results."""

    def __init__(self, call: Caller, twins: Twins, comparison: Comparison, context: Context) -> None:
        self._call = call
        self._twins = twins
        self._comparison = comparison
        self._context = context

    def explain(self, case: Case, expected: CallOutcome, actual: CallOutcome, others: OtherReferences) -> str:
        """Return why the device's results are right although their strides are not CPU's; "" if they are not right.

        ``others``: the references of ``expected`` for values.
        """
        if case.shared or actual.error is not None:
            return ""
        same_values = self._comparison.same_values(expected, actual)
        if same_values and self._are_of_decomposition(case, expected, actual):
            return DECOMPOSED_STRIDES
        if self._are_of_dense(case, expected, actual, others, same_values=same_values):
            return DENSE_STRIDES
        return PREDICTED_STRIDES if same_values and self.are_predicted(case, expected, actual) else ""

    def are_predicted(self, case: Case, expected: CallOutcome, actual: CallOutcome) -> bool:
        """Return whether only resized ``out=`` arguments differ from CPU in strides, and Meta predicts their strides.

        Values are not compared.

        Linear algebra on CPU leaves such an argument in the column-major order of LAPACK, which torch does not
        document. New results need CPU's strides whatever the kernel for Meta predicts: it ignores the memory format
        that some convolutions keep.
        """
        if not self._context.is_plain_on_cpu or case.shared or actual.error is not None:
            return False
        if _of_others(expected) != _of_others(actual):
            return False
        predicted = meta.called(case, self._twins, self._call.op, placed=True)
        return predicted is not None and _are_of_either(*(_of_resized(o) for o in (expected, predicted, actual)))

    def _are_of_dense(
        self, case: Case, expected: CallOutcome, actual: CallOutcome, others: OtherReferences, *, same_values: bool
    ) -> bool:
        """Return whether the device gives the strides that CPU gives for the same arguments without gaps.

        The values have to be those of CPU's call, or all of them those of the call without gaps, which may take
        another path. In the second case CPU's two calls have to agree within the tolerance of the op.

        False if torch's kernel for Meta gives CPU's strides for the arguments as they are, or if an argument is
        written, which keeps its strides.
        """
        if any(a.slot.written for a in expected.side.arguments):
            return False
        strides = _of_leaves(actual)
        if strides == _of_leaves(expected):  # a device that agrees with CPU this time is not excused
            return False
        dense = self._call(altered.dense(self._twins, case, torch.preserve_format))
        if dense.error is not None or _of_leaves(dense) != strides:
            return False
        if not same_values and not (
            self._comparison.same_values(dense, actual) and self._comparison.are_close(expected, dense, others)
        ):
            return False
        predicted = meta.called(case, self._twins, self._call.op)
        return predicted is None or _of_leaves(predicted) != _of_leaves(expected)

    def _are_of_decomposition(self, case: Case, expected: CallOutcome, actual: CallOutcome) -> bool:
        """Return whether each result has the strides of CPU or of torch's decomposition, and not all have CPU's."""
        decomposition = decomposition_of(self._call.op)
        if decomposition is None:
            return False
        decomposed = oracle.call(decomposition, self._twins.side(case, CPU))
        if decomposed.error is not None:
            return False
        return _are_of_either(*(_of_leaves(outcome) for outcome in (expected, decomposed, actual)))


def _are_of_either(expected: list[Strides], other: list[Strides], actual: list[Strides]) -> bool:
    """Return whether each tensor has CPU's strides or the ``other`` ones, and at least one does not have CPU's."""
    if not len(expected) == len(other) == len(actual):
        return False
    sides = zip(actual, expected, other, strict=True)
    return actual != expected and all(got in (want, another) for got, want, another in sides)


def _of_leaves(outcome: CallOutcome) -> list[Strides]:
    """Return the sizes and strides of a call's results."""
    return [_strides(leaf) for _, leaf in outcome.leaves]


def _of_resized(outcome: CallOutcome) -> list[Strides]:
    """Return the sizes and strides of the ``out=`` arguments that a call resized."""
    return [_strides(a.tensor) for a in outcome.side.arguments if _is_resized(a)]


def _of_others(outcome: CallOutcome) -> list[Strides]:
    """Return the sizes and strides of all results and written arguments that are no resized ``out=`` arguments."""
    resized = [a.tensor for a in outcome.side.arguments if _is_resized(a)]
    leaves = [_strides(leaf) for _, leaf in outcome.leaves if not any(leaf is tensor for tensor in resized)]
    return leaves + [_strides(a.tensor) for a in outcome.side.arguments if a.slot.written and not _is_resized(a)]


def _is_resized(argument: Argument) -> bool:
    """Return whether a call gave an ``out=`` argument another size."""
    is_out = argument.slot.written and not argument.slot.pool
    return is_out and argument.tensor.shape != torch.Size(argument.placement.size)


def _strides(leaf: Any) -> Strides:
    """Return the size and strides of a strided tensor, without strides if it is empty; else two empty tuples."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
        return (), ()
    return tuple(leaf.shape), leaf.stride() if leaf.numel() else ()
