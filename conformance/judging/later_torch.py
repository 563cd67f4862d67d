"""The outcome of a case under a later torch: one more reference where this torch's CPU gives another result."""

from __future__ import annotations

from conformance.contexts import Context
from conformance.corpus import later
from conformance.judging import altered, oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Twins
from conformance.plan.case import Case
from conformance.torch_versions import later_kernel

LATER = "the CPU of a later torch gives another result than this one's, and the device has that one"


def outcome(case: Case, twins: Twins, context: Context) -> CallOutcome | None:
    """Return CPU's results under a later torch; None if they are not known to differ, or if that call raises."""
    kernel = later_kernel(case.cell.overload) if context.is_plain_on_cpu and not case.shared else None
    if kernel is not None:
        return oracle.call(kernel, altered.dense(twins, case))
    found = _found(case, context)
    if found is None or found.error:
        return None
    side = altered.dense(twins, case)
    written = [a for a in side.arguments if a.slot.written]
    returned = len(found.results) - len(written)
    for argument, tensor in zip(written, found.results[returned:], strict=True):
        argument.tensor = tensor if tensor is not None else argument.tensor
    return CallOutcome(side, [(str(i), leaf) for i, leaf in enumerate(found.results[:returned])])


def raises(case: Case, context: Context) -> frozenset[str]:
    """Return the names of the errors that a device may raise because CPU raises them under a later torch.

    Empty if CPU raises none. An op without a kernel for a dtype raises RuntimeError before torch 2.8, and
    NotImplementedError since.
    """
    found = _found(case, context)
    error = found.error if found else ""
    return frozenset({error, "RuntimeError"} if error == "NotImplementedError" else {error} - {""})


def _found(case: Case, context: Context) -> later.Later | None:
    return None if context.name or case.shared else later.of(case.id)
