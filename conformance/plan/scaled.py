"""A case of a generated size, at other sizes."""

from __future__ import annotations

from dataclasses import replace

from conformance.corpus.model import TensorSlot
from conformance.corpus.places import places, resized, with_tensors
from conformance.plan.case import Case
from conformance.plan.cases import cases_of_sample

AXES = ("sizes", "large")


def size(case: Case) -> int:
    """Return the generated size, which is the largest size of the sample; 0 if the case has no generated size."""
    if case.sample.axis not in AXES:
        return 0
    return max((n for _, n in places(case.sample)), default=0)


def at_size(case: Case, n: int) -> Case:
    """Return the case with its generated size replaced by ``n`` (at least 1), wherever it occurs."""
    old = size(case)
    sample = resized(case.sample, {place: n for place, m in places(case.sample) if m == old})
    sample = with_tensors(sample, [_bounded(slot, old, n) for slot in sample.tensors])
    sample = replace(sample, name=f"{sample.name}:{n}")
    found = list(cases_of_sample(case.cell, sample, pointwise=False))
    return next((c for c in found if c.variant == case.variant), found[0])


def _bounded(slot: TensorSlot, old: int, n: int) -> TensorSlot:
    """Return a slot whose generated integers stay below the new size where they stayed below the old one."""
    kind, *bounds = slot.fill.split("/")
    if not any(bound == str(old) for bound in bounds):
        return slot
    return replace(slot, fill="/".join([kind, *(str(n) if bound == str(old) else bound for bound in bounds)]))
