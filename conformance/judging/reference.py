"""When the reference may be what is wrong: cases whose CPU result is nobody's promise, or that the device may not have.

A case is compared as far as it can be first. Only a difference raises a doubt, and a doubt excuses no more than what
the CPU does: where its result is defined in another way, the device has to give that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.judging import oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.outcomes import Comparison
from conformance.judging.tolerances import position_of
from conformance.plan.cases import Case
from conformance.records import Mismatch
from conformance.vocabulary import Check

UNSOUND = "the CPU reference does not agree with itself: for these arguments it reads memory that nobody wrote"
LAYOUT = "the CPU's own values depend on how its arguments lie in memory: it computes others from contiguous tensors"
LOST = "the CPU returns another tensor than the out= that it was given"
TWICE = "CPU writes to an expanded argument without a word: which of two writes to one element wins is nobody's promise"


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls that a doubt may have to see, each made when it is asked for."""

    again: Callable[[], CallOutcome]  # the CPU's, with the same arguments
    surrounded: Callable[[int], CallOutcome]  # the CPU's, with a value behind the storage of each argument
    dense: Callable[[], CallOutcome]  # the CPU's, with the same values in contiguous tensors
    device: Callable[[], CallOutcome]


def doubt(
    case: Case, expected: CallOutcome, mismatches: Sequence[Mismatch], comparison: Comparison, calls: Calls
) -> str:
    """Why the reference, not the device, may be what is wrong; "" when it holds. Asked only about a difference."""
    if unsound(expected, calls):
        return UNSOUND
    if expected.error is not None:
        return ""
    if _loses_out(expected):
        return LOST if comparison.same_results(expected, calls.device()) else ""
    strided = bool(case.shared) or any(p.layout != "contiguous" for p in case.placements)
    if strided and all(m.check is Check.VALUE for m in mismatches):
        return _doubt_of_layout(case, expected, comparison, calls)
    return ""


def unsound(expected: CallOutcome, calls: Calls) -> bool:
    """Whether the CPU's results depend on memory that is not its arguments'."""
    if not oracle.agrees_with_itself(expected, calls.again):
        return True
    return expected.error is None and oracle.reads_behind_its_arguments(calls.surrounded)


def writes_twice(case: Case) -> bool:
    """Whether an argument that the op writes has several indices for one element."""
    pairs = zip(case.sample.tensors, case.placements, strict=True)
    return any(slot.written and placement.layout == "expanded" for slot, placement in pairs)


def _doubt_of_layout(case: Case, expected: CallOutcome, comparison: Comparison, calls: Calls) -> str:
    """Whether the CPU gives other values for the same ones in contiguous tensors, and the device gives those.

    Of arguments that share memory nobody says what is right: there the CPU's disagreement is enough.
    """
    dense = calls.dense()
    if dense.error is not None or len(dense.leaves) != len(expected.leaves) or comparison.same_values(dense, expected):
        return ""
    return LAYOUT if case.shared or comparison.same_values(dense, calls.device()) else ""


def _loses_out(expected: CallOutcome) -> bool:
    """Whether an out= argument is not among the results of a call that has results."""
    outs = [i for i, a in enumerate(expected.side.arguments) if a.slot.written and not a.slot.pool]
    return expected.returned is not None and any(position_of(expected, i) is None for i in outs)
