"""Further references of a case, used to decide whether the device's result may differ from CPU's by that much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch

from conformance.judging import conditioning, meta, oracle
from conformance.judging.closeness import widen
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import CPU, Sides, is_on_host
from conformance.layouts import CONTEXTS
from conformance.plan.case import Case


@dataclass(frozen=True, slots=True)
class OtherReference:
    """The other references of one result."""

    outcomes: OtherReferences
    pick: Callable[[CallOutcome], torch.Tensor | None]  # returns the result from an outcome

    def float64(self) -> torch.Tensor | None:
        """Return the result in double precision; None where there is no float64 reference."""
        outcome = self.outcomes.wide
        return self.pick(outcome) if outcome else None

    def spread(self, reference: torch.Tensor) -> torch.Tensor:
        """Return how far rounding of the arguments moves each element of ``reference``, see :mod:`conditioning`."""
        if not self.outcomes.may_round:
            return torch.full_like(reference.abs(), torch.nan)
        near, far = ([self._drawn(outcome, reference.shape) for outcome in draws] for draws in self.outcomes.draws)
        return conditioning.spread(reference, near, far)

    def own(self, reference: torch.Tensor) -> torch.Tensor:
        """Return CPU's distance from a wider dtype for nearby arguments: per element, the largest of several draws.

        For the arguments of the case, CPU may be right by luck although it rounds intermediate numbers.
        """
        largest = torch.zeros_like(reference.abs())
        if not self.outcomes.may_round:
            return largest
        for narrow, wide in self.outcomes.nearby:
            true = self._drawn(wide, reference.shape)
            distance = (self._drawn(narrow, reference.shape) - true).abs()
            counts = distance.isfinite() & (true.abs() >= self.outcomes.least_nearby)
            largest = torch.maximum(largest, torch.where(counts, distance, torch.zeros_like(distance)))
        return largest * self.outcomes.nearby_unit

    def without_nan(self) -> torch.Tensor | None:
        """Return the result for arguments with zeros in place of NaN; None where CPU raises."""
        outcome = self.outcomes.without_nan
        return self.pick(outcome) if outcome else None

    def of_magnitudes(self) -> torch.Tensor | None:
        """Return the result for the magnitudes of the arguments; None where CPU raises."""
        outcome = self.outcomes.of_magnitudes
        return self.pick(outcome) if outcome else None

    def _drawn(self, outcome: CallOutcome | None, shape: torch.Size) -> torch.Tensor:
        """Return the result in one draw; NaN if the draw raised or has another shape."""
        found = self.pick(outcome) if outcome else None
        if found is None or found.shape != shape:
            return torch.full(shape, float("nan"), dtype=torch.float64)
        return widen(found)


class OtherReferences:
    """The other references of a case, each computed at its first use.

    ``may_round`` returns whether rounding may explain a difference from CPU's result. It is called before the
    arguments are perturbed, which takes many calls. ``half_unit`` returns the largest half unit for the perturbation.
    """

    def __init__(
        self, case: Case, twins: Sides, op: Callable[..., Any], may_round: Callable[[], bool] = lambda: True,
        half_unit: Callable[[], float] = lambda: math.inf,
    ) -> None:  # fmt: skip
        self._of = (case, twins, op)
        self._half_unit = half_unit
        self._may_round = may_round

    @cached_property
    def may_round(self) -> bool:
        """Whether rounding may explain a difference."""
        return self._may_round()

    @cached_property
    def wide(self) -> CallOutcome | None:
        """The case in double precision; None where that adds nothing or raises."""
        return oracle.float64(*self._of)

    @cached_property
    def draws(self) -> tuple[list[CallOutcome | None], list[CallOutcome | None]]:
        """The case with its arguments perturbed: the near draws and the far ones."""
        wide, most = self.wide is not None, self._half_unit()
        draws = range(conditioning.DRAWS)
        near, far = (
            [oracle.perturbed(*self._of, wide, size, i, most) for i in draws]
            for size in (conditioning.NEAR, conditioning.FAR)
        )
        return near, far

    @cached_property
    def nearby(self) -> list[tuple[CallOutcome, CallOutcome]]:
        """Pairs of outcomes on CPU with nearby arguments, in the case's dtype (float32 for float64) and a wider one."""
        found = (oracle.nearby(*self._of, draw) for draw in range(conditioning.DRAWS))
        return [pair for pair in found if pair is not None]

    @property
    def nearby_unit(self) -> float:
        """The factor from a distance between two outcomes of :attr:`nearby` to a distance in the case's dtype."""
        return oracle.nearby_unit(self._of[0])

    @property
    def least_nearby(self) -> float:
        """The magnitude below which a float32 result, in place of float64, has too few digits to show its rounding."""
        info = torch.finfo(torch.float32)
        return float(info.tiny / info.eps) if self.nearby_unit != 1 else 0.0

    @cached_property
    def without_nan(self) -> CallOutcome | None:
        """The case with zeros in place of the NaN of its arguments; None where CPU raises."""
        return oracle.without_nan(*self._of)

    @cached_property
    def of_magnitudes(self) -> CallOutcome | None:
        """The case with the magnitudes of its arguments; None where CPU raises."""
        return oracle.of_magnitudes(*self._of)

    def promoted_strides(self, i: int, dtype: torch.dtype) -> tuple[int, ...] | None:
        """Return the strides of result ``i`` if no argument had to be promoted to ``dtype``; None if none has to be."""
        outcome = oracle.promoted(*self._of, str(dtype).removeprefix("torch."))
        leaf = outcome.leaves[i][1] if outcome and i < len(outcome.leaves) else None
        return leaf.stride() if isinstance(leaf, torch.Tensor) else None

    def follows_arguments(self, i: int) -> bool:
        """Return whether result ``i``, which is no argument, is on the device of the arguments: on Meta, if these are.

        If the call on Meta raises, because sizes depend on values or torch has no kernel, every result follows a
        device argument unless the call names a device.
        """
        outcome = meta.called(*self._of)
        if outcome is None:
            return self._has_device_arguments_alone()
        leaf = outcome.leaves[i][1] if i < len(outcome.leaves) else None
        return isinstance(leaf, torch.Tensor) and leaf.is_meta

    def refused_early(self) -> bool:
        """Return whether torch refuses the call on Meta too, that is, before it reads any value."""
        return meta.refuses(*self._of)

    def _has_device_arguments_alone(self) -> bool:
        """Return whether a plain call has an argument on the device, and none that names a device for its results."""
        case, twins, _ = self._of
        slots = case.sample.tensors
        if case.cell.layout in CONTEXTS or all(is_on_host(slot, case) for slot in slots):
            return False
        side = twins.side(case, CPU)
        return not any(isinstance(arg, torch.device) for arg in (*side.args, *side.kwargs.values()))

    @property
    def shares_by_schema(self) -> bool:
        """Whether the op's schema says that a result shares memory with an argument, or there is no schema."""
        schema = getattr(self._of[2], "_schema", None)
        return schema is None or any(r.alias_info for r in schema.returns)

    def leaf(self, i: int) -> OtherReference:
        """Return the references of result ``i``."""
        return OtherReference(self, partial(_leaf, i))

    def argument(self, i: int) -> OtherReference:
        """Return the references of written argument ``i`` after the call."""
        return OtherReference(self, lambda outcome: outcome.side.arguments[i].tensor)


def _leaf(i: int, outcome: CallOutcome) -> torch.Tensor | None:
    leaf = outcome.leaves[i][1] if i < len(outcome.leaves) else None
    return leaf if isinstance(leaf, torch.Tensor) else None
