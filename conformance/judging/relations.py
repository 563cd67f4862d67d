"""Relations between drawn results of one call: one is a multiple of the other, which is noise or a mask of zeros.

Pure, on CPU tensors and on what :func:`host_copy` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from conformance.judging import facts
from conformance.judging.closeness import widen
from conformance.judging.oracle import CallOutcome
from conformance.judging.tolerances import Criteria, position_of
from conformance.judging.views import host_copy, view
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

# Fewer numbers other than 0 than this may be a multiple by chance.
FEW = 8
# The units in the last place of the product by which CPU's result may be off, and the device's.
OF_CPU = 8.0
OF_DEVICE = 16.0


@dataclass(frozen=True, slots=True)
class _Relation:
    """The factors of a drawn result: ``multiple``, and ``values`` of argument ``factor`` (None: 1) before the call."""

    multiple: complex
    factor: str | None
    values: torch.Tensor

    def product(self, other: torch.Tensor) -> torch.Tensor:
        """Return the required values of the first drawn result, in double precision, on CPU."""
        return self.multiple * self.values * widen(host_copy(other))


def apart(criteria: Criteria, expected: CallOutcome, actual: CallOutcome) -> Mismatch | None:
    """Return a mismatch for a drawn result that is related to the first drawn result on CPU, but not on the device.

    They are related if the first result is c x argument x other, or c x other, in all elements: native_dropout
    returns a mask for its backward, and rrelu its noise. c is CPU's. The relation does not depend on the drawn
    numbers.
    """
    theirs, ours = _drawn(criteria, expected), _drawn(criteria, actual)
    if len(theirs) < 2 or not _are_alike(theirs, ours):
        return None
    (first, product), here = theirs[0], host_copy(ours[0][1])
    for (name, other), (_, device) in zip(theirs[1:], ours[1:], strict=True):
        relation = _relation(expected, product, other) if other.shape == product.shape else None
        wrong = _off(here, relation.product(device), OF_DEVICE) if relation else None
        if relation and wrong is not None and bool(wrong.any()):
            return _finding(name, first, relation, wrong, here, host_copy(device))
    return None


def _finding(
    name: str, first: str, relation: _Relation, wrong: torch.Tensor, product: torch.Tensor, other: torch.Tensor
) -> Mismatch:
    index = tuple(int(i) for i in wrong.nonzero()[0]) if wrong.dim() else ()
    found = {
        "kind": Fact.UNRELATED_DRAWS.value, "other": first, "factor": relation.factor,
        "multiple": facts.value(relation.multiple), "wrong": int(wrong.sum()), "of": wrong.numel(),
        "index": list(index), "device": facts.value(other[index].item()),
        "device_other": facts.value(product[index].item()),
    }  # fmt: skip
    return Mismatch(Check.DISTRIBUTION, name, found)


Drawn = list[tuple[str, torch.Tensor]]


def _drawn(criteria: Criteria, outcome: CallOutcome) -> Drawn:
    """Return the drawn results, and then the written arguments that are none of the results; each with its name."""
    if not criteria.random:
        return []
    leaves = [(name, leaf) for i, (name, leaf) in enumerate(outcome.leaves) if criteria.drawn(i)]
    arguments = [
        (a.slot.name, a.tensor)
        for i, a in enumerate(outcome.side.arguments)
        if a.slot.written and position_of(outcome, i) is None
    ]
    return [(n, t) for n, t in leaves + arguments if isinstance(t, torch.Tensor) and t.layout == torch.strided]


def _are_alike(theirs: Drawn, ours: Drawn) -> bool:
    """Return whether both sides have as many drawn results, of the same dtypes and sizes, and the first is inexact."""
    alike = len(theirs) == len(ours) and all(
        a.dtype == b.dtype and a.shape == b.shape for (_, a), (_, b) in zip(theirs, ours, strict=True)
    )
    first = theirs[0][1].dtype
    return alike and (first.is_floating_point or first.is_complex)


def _relation(expected: CallOutcome, product: torch.Tensor, other: torch.Tensor) -> _Relation | None:
    """Return how CPU's first drawn result depends on another one of its size; None if it does not."""
    for factor, values in _factors(expected, product):
        multiple = _multiple(product, values * widen(other))
        if multiple is not None:
            return _Relation(multiple, factor, values)
    return None


def _factors(expected: CallOutcome, product: torch.Tensor) -> Iterator[tuple[str | None, torch.Tensor]]:
    """Yield (name, values) of each possible factor: the read arguments of the product's size; then (None, 1)."""
    for argument in expected.side.arguments:
        if argument.slot.pool and tuple(argument.placement.size) == tuple(product.shape):
            yield argument.slot.name, widen(view(argument.before, argument.tensor.dtype, argument.placement))
    yield None, torch.ones((), dtype=torch.float64)


def _multiple(result: torch.Tensor, of: torch.Tensor) -> complex | None:
    """Return the number by which ``of`` is multiplied to give ``result``; None if there is none but by chance."""
    wide, tiny = widen(result), torch.finfo(result.dtype).tiny
    counted = wide.isfinite() & of.isfinite() & (wide.abs() >= tiny) & (of.abs() >= tiny)
    if int(counted.sum()) < FEW:
        return None
    multiple: complex = (wide[counted] / of[counted]).mean().item()
    return None if bool(_off(result, multiple * of, OF_CPU).any()) else multiple


def _off(result: torch.Tensor, product: torch.Tensor, units: float) -> torch.Tensor:
    """Return elementwise whether a result is further from the product than rounding explains.

    A product that is not finite, or may not be finite in the dtype of the result, does not count.
    """
    info = torch.finfo(result.dtype)
    magnitude = product.abs()
    near = (widen(result) - product).abs() <= units * (info.eps * magnitude + info.tiny)
    return ~near & (magnitude < info.max / 2)
