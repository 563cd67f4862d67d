"""CPU's outcome of a case, and the reasons why it may be no reference: CPU does not serve the case, or it is undefined.

A case is normally compared before CPU is doubted. Only a difference raises a doubt, and a doubt excuses no more than
CPU's own behaviour explains: where CPU's result is defined in another way, the device has to give that result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance.contexts import PLAIN, Context
from conformance.judging import altered, factors, later_torch, meta, oracle, writes
from conformance.judging.later_torch import LATER
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.other_references import OtherReferences
from conformance.judging.other_strides import OtherStrides
from conformance.judging.other_values import LAYOUT, OtherValues
from conformance.judging.outcomes import Comparison, nowhere
from conformance.judging.refusals import Refusals
from conformance.judging.tolerances import Criteria, position_of
from conformance.judging.twins import CPU, Twins
from conformance.layouts import DRAWN
from conformance.plan.case import Case
from conformance.records import Mismatch
from conformance.support.lines import error_line
from conformance.torch_versions import as_composed, overload_of, tags
from conformance.vocabulary import Check

#: The rounds of further CPU calls before CPU's values are held against a device. Some of CPU's resampling kernels
#: multiply memory behind a buffer of their own by zero, which at times changes the sign of a zero.
ROUNDS = 4
UNSOUND = "the CPU reference does not agree with itself: for these arguments it reads memory that nobody wrote"
PREDICTED = "torch's own kernel for Meta predicts other sizes than CPU's kernel gives, and the device has those"
COMPOSED = "torch's own kernel for all devices gives another result than CPU's, and the device has that one"
LOST = "the CPU returns another tensor than the one that it was given to write"
OVERRUN = "CPU takes an expanded argument for dense, and writes behind its storage before it raises"
BEHIND = "CPU writes behind the storage of an argument"
RESIZED = "CPU gave the argument of an in-place op another size instead of an error"
ORDER = "which of several writes to one element comes last is not defined, and the device has another one of the values"
NOT_FINITE = "what is left of numbers that are not finite in a factorization is not defined"
PIVOTS = "the matrix has no such factors, or others with other pivots, as those of the device are"
OVERLAP = "CPU refuses an argument that overlaps the one that is written"
TWICE = "CPU silently wrote an overlapping argument, so the result is undefined"


#: The checks in which torch's kernels for all devices may differ from CPU's own: they check arguments, round and lay
#: out results in another way.
_COMPOSED_OTHERWISE = frozenset({
    Check.ALIASING, Check.DTYPE, Check.ERROR_PARITY, Check.OFFSET, Check.SHAPE, Check.STORAGE, Check.STRIDE,
    Check.VALUE,
})  # fmt: skip
#: The checks that fail if only the numbers of a result differ, or if a side refuses them.
OF_NUMBERS = frozenset({Check.ERROR_PARITY, Check.VALUE})
#: The checks that fail if sizes of a result differ.
_OF_OTHER_SIZES = frozenset({Check.SHAPE, Check.STRIDE, Check.VALUE})
#: The checks that fail if strides or values of a result differ.
_OF_STRIDES_AND_VALUES = frozenset({Check.STRIDE, Check.VALUE})


class NotJudged(Exception):
    """The error that a case has no reference. ``tainted``: CPU may have damaged this process before this was known."""

    def __init__(self, why: str, tainted: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.tainted = tainted


class Reference:
    """CPU, as the reference of one overload. It makes more than one call only where it has to be doubted."""

    def __init__(
        self, call: Caller, twins: Twins, criteria: Criteria, comparison: Comparison, context: Context = PLAIN
    ) -> None:
        self._context = context
        self._call = call
        self._twins = twins
        self._criteria = criteria
        self._comparison = comparison
        self._refusals = Refusals(call, twins, comparison, context)
        self._strides = OtherStrides(call, twins, comparison, context)
        self._values = OtherValues(call, twins, criteria, comparison, context)

    def outcome(self, case: Case) -> CallOutcome:
        """Return CPU's outcome. Raises NotJudged if it is known to be no reference before the device is called."""
        twice = _writes_twice(case)
        try:
            if twice:
                self._try_expanded(case)
            expected = (None if twice else self._with_room(case)) or self.again(case)
        except (LookupError, RuntimeError) as e:
            raise NotJudged(f"the arguments cannot be made on CPU: {error_line(e)}") from e
        if oracle.cannot_serve(expected.error) or self._context.refuses(expected.error):
            raise NotJudged(f"CPU: {error_line(expected.error)}")
        if twice and expected.error is None:
            raise NotJudged(TWICE, tainted=True)
        if expected.error is not None and _reads_turned(case):
            raise NotJudged(OVERLAP)
        if self._criteria.doubts(case.cell.layout) and self._is_unsound(case, expected):
            raise NotJudged(UNSOUND, tainted=True)
        return expected

    def _try_expanded(self, case: Case) -> None:
        """Make a trial call with room behind a written expanded argument.

        Raises NotJudged if the call returns, or writes into the room.
        """
        trial = self._call(altered.roomy(self._twins, case))
        if trial.error is None:
            raise NotJudged(TWICE)
        if any(a.overrun for a in trial.side.arguments):
            raise NotJudged(OVERRUN)

    def _with_room(self, case: Case) -> CallOutcome | None:
        """Call with drawn strides and room behind written arguments. Raises NotJudged if CPU writes into the room.

        Returns None in other layouts, if nothing is written, and if CPU raises: storages with room cannot be resized.
        """
        if case.cell.layout not in DRAWN or not any(slot.written for slot in case.sample.tensors):
            return None
        found = self._call(altered.roomy(self._twins, case))
        if any(a.overrun for a in found.side.arguments):
            raise NotJudged(BEHIND, tainted=True)
        return found if found.error is None else None

    def again(self, case: Case, seed: int | None = None) -> CallOutcome:
        """Make CPU's call again, with fresh arguments."""
        with self._context.around():
            return self._call(self._twins.side(case, CPU), seed=seed)

    def doubt(
        self, case: Case, expected: CallOutcome, mismatches: Sequence[Mismatch], actual: Callable[[], CallOutcome],
        others: OtherReferences,
    ) -> list[Mismatch]:  # fmt: skip
        """Return the mismatches to report. Raises NotJudged if CPU, and not the device, may be wrong.

        These are all ``mismatches``, or those of strides alone if the strides are wrong and the values are right
        although they are not CPU's.

        ``actual`` returns the device's outcome of another call, for tests whether the device does as CPU does with
        other arguments. A device that agrees with CPU in that call is not excused for the first call. ``others``: the
        references of the case besides ``expected``.
        """
        if self._is_unsound(case, expected):
            raise NotJudged(UNSOUND, tainted=True)
        if self._factorizes and {m.check for m in mismatches} <= OF_NUMBERS and not factors.are_finite(expected):
            raise NotJudged(NOT_FINITE)
        if self._does_as_composed(case, expected, mismatches, actual, others):
            raise NotJudged(COMPOSED)
        if self._ends_as_later(case, expected, actual):
            raise NotJudged(LATER)
        if expected.error is not None:
            reason = self._refusals.explain(case, expected, mismatches, actual)
            if reason:
                raise NotJudged(reason)
            return list(mismatches)
        if _resizes_self(expected, self._call.op):
            raise NotJudged(RESIZED, tainted=True)
        if _loses_out(expected, self._call.op):
            if self._comparison.same_results(expected, actual()):
                raise NotJudged(LOST, tainted=True)
            return list(mismatches)
        wrong = self._doubt_results(case, expected, {m.check for m in mismatches}, actual, others)
        return [m for m in mismatches if m.check in wrong]

    def may_round(self, case: Case, expected: CallOutcome) -> bool:
        """Return whether rounding may explain a result that differs from CPU's.

        False if CPU itself gives grossly different values for dense arguments, because then its kernel ignores
        strides. A device that has the values for dense arguments is excused by :meth:`_excuse_of_values`.
        """
        if case.shared or all(p.layout == "contiguous" for p in case.placements):
            return True
        dense = self._call(altered.dense(self._twins, case))
        comparable = dense.error is None and len(dense.leaves) == len(expected.leaves)
        return not (comparable and self._comparison.differ_grossly(expected, dense))

    def _doubt_results(
        self, case: Case, expected: CallOutcome, checks: set[Check], actual: Callable[[], CallOutcome],
        others: OtherReferences,
    ) -> set[Check]:  # fmt: skip
        """Return the checks to report if both sides returned and ``checks`` failed. Raises NotJudged."""
        of_sizes = Check.SHAPE in checks and checks <= {Check.SHAPE, Check.VALUE}
        if of_sizes and self._has_sizes_of_dense(case, expected, actual):
            raise NotJudged(LAYOUT, tainted=self._may_write_behind(case))
        if Check.SHAPE in checks and checks <= _OF_OTHER_SIZES and self._has_sizes_of_meta(case, expected, actual()):
            raise NotJudged(PREDICTED)
        if not checks <= _OF_STRIDES_AND_VALUES:
            return checks
        if Check.STRIDE in checks:
            return self._doubt_strides(case, expected, checks, actual, others)
        excuse = self._excuse_of_values(case, expected, actual, others)
        if excuse:
            raise excuse
        if not oracle.agrees_with_itself(expected, lambda: self.again(case), ROUNDS, self._undefined(expected)):
            raise NotJudged(UNSOUND, tainted=True)
        return checks

    def _doubt_strides(
        self, case: Case, expected: CallOutcome, checks: set[Check], actual: Callable[[], CallOutcome],
        others: OtherReferences,
    ) -> set[Check]:  # fmt: skip
        """Return the checks to report if strides differ, and perhaps values. Raises NotJudged."""
        device = actual()
        if Check.VALUE in checks and self._comparison.same_values(expected, device):
            return checks  # a device that agrees with CPU this time is not excused
        reason = self._strides.explain(case, expected, device, others)
        if reason:
            raise NotJudged(reason)
        predicted = self._strides.are_predicted(case, expected, device)
        excuse = self._excuse_of_values(case, expected, actual, others) if predicted or Check.VALUE in checks else None
        if excuse and predicted:
            raise excuse
        return checks - {Check.VALUE} if excuse else checks

    def _excuse_of_values(
        self, case: Case, expected: CallOutcome, actual: Callable[[], CallOutcome], others: OtherReferences
    ) -> NotJudged | None:
        """Return why the device's values are right although CPU's differ; None if they are wrong. Ignores strides."""
        if self._may_choose or self._factorizes:
            device = actual()
            wrong = self._comparison.wrong_values(expected, device, others)
            differs = not nowhere(wrong)  # a device that agrees with CPU this time is not excused
            if differs and self._may_choose and writes.explain(self._call.op, expected, device, wrong):
                return NotJudged(ORDER)
            if differs and self._factorizes and factors.explain(self._call.op, expected, device, wrong):
                return NotJudged(PIVOTS)
        reason = self._values.explain(case, expected, actual, others)
        return NotJudged(reason, tainted=self._may_write_behind(case)) if reason else None

    @property
    def _may_choose(self) -> bool:
        """Whether the device's own kernel may leave another one of the values that it writes to an element."""
        return self._criteria.facts.last_wins and not self._comparison.by_cpu

    @property
    def _factorizes(self) -> bool:
        """Whether the device's own kernel computes a factorization."""
        return self._criteria.facts.factorizes and not self._comparison.by_cpu

    def _may_write_behind(self, case: Case) -> bool:
        """Return whether CPU writes behind the storage of an argument, or raises, in a trial with room there."""
        trial = self._call(altered.roomy(self._twins, case, usual=True))
        return trial.error is not None or any(a.overrun for a in trial.side.arguments)

    def _does_as_composed(
        self, case: Case, expected: CallOutcome, mismatches: Sequence[Mismatch], actual: Callable[[], CallOutcome],
        others: OtherReferences,
    ) -> bool:  # fmt: skip
        """Return whether the device does what torch's kernels for all devices do on CPU, for a composite overload."""
        if not self._comparison.is_composite or self._criteria.random or not self._context.is_plain_on_cpu:
            return False
        if any(m.check not in _COMPOSED_OTHERWISE for m in mismatches):
            return False
        composed = oracle.call(as_composed(self._call.op, self._comparison.device), self._twins.side(case, CPU))
        device = actual()
        if composed.error is not None or device.error is not None:
            return error_line(composed.error) == error_line(device.error)
        if expected.error is None and not self._comparison.differences(expected, device, others):
            return False
        return not self._comparison.differences(composed, device, others)

    def _ends_as_later(self, case: Case, expected: CallOutcome, actual: Callable[[], CallOutcome]) -> bool:
        """Return whether the device raises or returns as CPU does under a later torch, but not under this one."""
        raised = later_torch.raises(case, self._context)
        if raised:
            return type(expected.error).__name__ not in raised and type(actual().error).__name__ in raised
        found = later_torch.outcome(case, self._twins, self._context) if expected.error is not None else None
        return found is not None and self._comparison.same_values(found, actual())

    def _has_sizes_of_dense(self, case: Case, expected: CallOutcome, actual: Callable[[], CallOutcome]) -> bool:
        """Return whether the device gives CPU's sizes and values for dense arguments, where these are not dense."""
        if case.shared or all(p.layout == "contiguous" for p in case.placements):
            return False
        device = actual()
        if self._comparison.same_values(expected, device):
            return False
        orders = (torch.contiguous_format, torch.preserve_format)
        sides = (altered.dense(self._twins, case, order) for order in orders)
        return any(self._comparison.same_values(self._call(side), device) for side in sides)

    def _has_sizes_of_meta(self, case: Case, expected: CallOutcome, actual: CallOutcome) -> bool:
        """Return whether all results of the device have the sizes that Meta predicts, and not all results of CPU have.

        Some kernels of CPU return early for tensors without elements, and leave the result in the size of an
        argument.
        """
        if not self._context.is_plain_on_cpu or case.shared or actual.error is not None:
            return False
        predicted = meta.called(case, self._twins, self._call.op)
        if predicted is None:
            return False
        sizes = [[_size(leaf) for _, leaf in outcome.leaves] for outcome in (expected, predicted, actual)]
        return sizes[1] == sizes[2] != sizes[0]

    def is_sound(self, case: Case) -> bool:
        """Return whether CPU gives the same bits whatever memory holds, tried with every call that judging may make.

        A call of the case with finite numbers must not read past its arguments either: NaN in every result would hide
        this.
        """
        oracle.float64(case, self._twins, self._call.op)
        expected = self.again(case)
        return not self._is_unsound(case, expected) and not self._reads_behind(case, expected, finite=True)

    def _is_unsound(self, case: Case, expected: CallOutcome) -> bool:
        """Return whether CPU's results depend on memory outside its arguments."""
        undefined = self._undefined(expected)
        if not oracle.agrees_with_itself(expected, lambda: self.again(case), undefined=undefined):
            return True
        return self._reads_behind(case, expected)

    def _reads_behind(self, case: Case, expected: CallOutcome, *, finite: bool = False) -> bool:
        """Return whether CPU's call returns and reads past its arguments."""
        if expected.error is not None:
            return False

        def call_with(value: float) -> CallOutcome:
            return self._call(altered.surrounded(self._twins, case, value, finite=finite))

        return oracle.reads_behind_its_arguments(call_with, self._undefined(expected))

    def _undefined(self, outcome: CallOutcome) -> list[int]:
        """Return the positions of the results whose values are undefined."""
        return [i for i in range(len(outcome.leaves)) if not self._criteria.facts.equivalence_of(i).is_of_values]


def _size(leaf: Any) -> torch.Size | None:
    return leaf.shape if isinstance(leaf, torch.Tensor) else None


def _writes_twice(case: Case) -> bool:
    """Return whether an argument that the op writes has several indices for one element."""
    pairs = zip(case.sample.tensors, case.placements, strict=True)
    return any(slot.written and placement.layout == "expanded" for slot, placement in pairs)


def _reads_turned(case: Case) -> bool:
    """Return whether an argument is the written one, transposed. CPU may refuse this, and a device may accept it."""
    pairs = [(case.sample.tensors[a], case.placements[b]) for b, a, distance in case.shared if not distance]
    return any(a.written and placement.layout == "transposed" for a, placement in pairs)


def _resizes_self(expected: CallOutcome, op: Callable[..., Any]) -> bool:
    """Return whether an in-place call resized the argument that it writes, and this is not the purpose of the op."""
    schema = getattr(op, "_schema", None)
    if schema is None or not schema.name.endswith("_") or "inplace_view" in tags(overload_of(schema)):
        return False
    return any(a.slot.written and a.tensor.shape != a.placement.size for a in expected.side.arguments)


def _loses_out(expected: CallOutcome, op: Callable[..., Any]) -> bool:
    """Return whether a call with results does not return a written argument that it must return, such as ``out=``."""
    if expected.returned is None:
        return False
    promised = _returned_arguments(op)
    to_return = (i for i, a in enumerate(expected.side.arguments) if not a.slot.pool or a.slot.argument in promised)
    return any(expected.side.arguments[i].slot.written and position_of(expected, i) is None for i in to_return)


def _returned_arguments(op: Callable[..., Any]) -> set[str]:
    """Return the arguments that the op's schema says it returns: those that it writes in place."""
    schema = getattr(op, "_schema", None)
    if schema is None:
        return set()
    returned = [r.alias_info.before_set for r in schema.returns if r.alias_info and r.alias_info.is_write]
    return {a.name for a in schema.arguments if a.alias_info and any(a.alias_info.before_set & r for r in returned)}
