"""The criteria by which the results of an overload are judged, derived from the facts of ops/."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from conformance import ops
from conformance.judging import storages
from conformance.judging.closeness import Closeness, widen
from conformance.judging.oracle import CallOutcome
from conformance.judging.subnormals import real
from conformance.judging.twins import Argument
from conformance.judging.views import torch_dtype, view
from conformance.layouts import is_among
from conformance.ops.family import Accumulation, Equivalence, OpFacts, Tolerance


@dataclass(frozen=True, slots=True)
class Criteria:
    """The facts of one overload, by the position of a result."""

    facts: OpFacts
    subnormals: frozenset[torch.dtype] = frozenset()  # the real dtypes whose subnormal numbers the device keeps

    @property
    def random(self) -> bool:
        """Whether the overload draws, so that it has to be seeded."""
        return self.facts.random is not None

    @property
    def permutes(self) -> bool:
        """Whether each call draws the same numbers in another order, so that only their order shows what was drawn."""
        return self.facts.random is not None and self.facts.random.distribution == "permutation"

    @property
    def stable(self) -> bool:
        """Whether CPU's kernel gives the same bits each time, so that its fallback has to give them, too."""
        return not self.facts.unstable

    @property
    def may_alias(self) -> bool:
        """Whether a result may share an argument's memory or not, and both are right."""
        return self.facts.may_alias

    def doubts(self, layout: str) -> bool:
        """Return whether to doubt CPU before a difference is found, so that no status depends on luck."""
        return is_among(layout, self.facts.doubtful)

    def drawn(self, position: int | None) -> bool:
        """Return whether this result is drawn at random. A written argument that is not returned has no position."""
        return self.facts.random is not None and (position or 0) in self.facts.random.results

    def equivalence(self, position: int | None) -> Equivalence:
        """Return what has to be equal in this result; the values of a random one are judged elsewhere."""
        if self.drawn(position):
            return Equivalence.METADATA
        return Equivalence.EQUAL if position is None else self.facts.equivalence_of(position)

    @property
    def exact(self) -> bool:
        """Whether even a native kernel has to give the CPU's bits: it moves values and rounds nothing."""
        return self.facts.tolerance.exact

    def sums(self, dtype: torch.dtype) -> bool:
        """Return whether results of a dtype are sums of rounded numbers, so that cancellation leaves errors.

        Functions of complex numbers add up products. For complex128 no wider dtype gives the true result.
        """
        return dtype is torch.complex128 or self.facts.tolerance.accumulation is not Accumulation.NONE

    def closeness(self, expected: CallOutcome, result: torch.Tensor) -> Closeness:
        """Return the bound on the error of a native kernel's ``result``."""
        tolerance = self.facts.tolerance
        # A complex product or quotient is several rounded operations.
        operations = 4 if result.dtype.is_complex else 1
        steps = 0.0 if _in_its_own(tolerance) else STEPS * operations
        dtype = _computed_in(self.facts, expected, result)
        coarse = _is_inexact(result.dtype) and _eps(dtype or result.dtype) > _eps(torch.float32)
        several = min(tolerance.ulps, 2 * STEPS) if coarse and tolerance.normwise else tolerance.ulps
        ulps = several * operations
        kept = {real(one) for one in (result.dtype, dtype) if one} <= self.subnormals
        if tolerance.accumulation is Accumulation.CANCELS:
            magnitude = _magnitudes(expected, result.shape)
            return Closeness(
                tolerance.cpu_multiple, ulps, magnitude=magnitude, dtype=dtype, subnormals=kept, steps=steps
            )
        terms = _terms(tolerance.accumulation, expected, result)
        accumulates = tolerance.accumulation not in _OF_ITS_OWN
        return Closeness(
            tolerance.cpu_multiple, ulps, accumulates, terms, accumulates and not tolerance.normwise, dtype=dtype,
            subnormals=kept, signed_zeros=self.facts.signed_zeros,
            narrow=tolerance.accumulation is Accumulation.REPEATED, first_dim=tolerance.first_dim, steps=steps,
        )  # fmt: skip


# Accumulations for which the bound of an element depends only on its own magnitude and on its spread.
_OF_ITS_OWN = (Accumulation.NONE, Accumulation.FEW, Accumulation.REPEATED)
# How often a small float may be rounded: half a unit each time, where nothing cancels. Where several kernels compute
# in the small float, it may be rounded twice as often: eight units of bfloat16 are 6 %.
STEPS = 4.0
# The first factor of a product in ops that add it to another argument, which precedes the factor.
_FIRST_FACTORS = ("mat1", "mat", "batch1")


def _in_its_own(tolerance: Tolerance) -> bool:
    """Return whether a small float may be computed in its own dtype, by several kernels or by sums in memory."""
    return tolerance.normwise or tolerance.accumulation is Accumulation.REPEATED


@cache
def criteria_of(overload: str, subnormals: frozenset[torch.dtype] = frozenset()) -> Criteria:
    """Return the criteria of an overload, on a device that keeps the subnormal numbers of these dtypes."""
    return Criteria(ops.facts(overload), subnormals)


def _computed_in(facts: OpFacts, expected: CallOutcome, result: torch.Tensor) -> torch.dtype | None:
    """Return a coarser dtype than the result's, in which an intermediate result was rounded; None if there is none.

    An op with an ``out`` of a wider dtype computes in the dtype of the arguments that it reads. Arguments without
    dimensions count only if all are without: float32 over a complex128 number is complex64.
    """
    arguments = expected.side.arguments
    on_the_way = [torch_dtype(facts.computed_in)] if facts.computed_in else []
    if any(a.tensor is result and not a.slot.pool for a in arguments):
        read = [a.tensor for a in arguments if not a.slot.written and _is_inexact(a.tensor.dtype)]
        counted = [t for t in read if t.dim()] or read
        on_the_way += [min((t.dtype for t in counted), key=_eps)] if counted else []
    coarsest = max(on_the_way, key=_eps, default=None)
    return coarsest if coarsest and _is_inexact(result.dtype) and _eps(coarsest) > _eps(result.dtype) else None


def _eps(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps)


def _is_inexact(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)


def _magnitudes(expected: CallOutcome, shape: torch.Size) -> float | torch.Tensor:
    """Return the largest finite magnitude in the arguments that are read, as they were before the call.

    If the arguments can be broadcast to the ``shape`` of the result, return the largest magnitude for each element.
    Integers count only if no argument is floating: otherwise they are indices and counts.
    """
    read = [a for a in expected.side.arguments if a.slot.pool]
    floats = [a for a in read if _is_inexact(a.tensor.dtype)]
    views = [view(a.before, a.tensor.dtype, a.placement) for a in floats or read]
    found = [widen(values).abs().nan_to_num(0.0, 0.0, 0.0) for values in views]
    if found and all(_broadcasts(magnitudes.shape, shape) for magnitudes in found):
        return torch.stack([magnitudes.expand(shape) for magnitudes in found]).amax(0)
    return max((float(magnitudes.max()) for magnitudes in found if magnitudes.numel()), default=0.0)


def _broadcasts(shape: torch.Size, to: torch.Size) -> bool:
    """Return whether a tensor of a shape can be expanded to another one."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def _terms(accumulation: Accumulation, expected: CallOutcome, result: torch.Tensor) -> int:
    tensors = [a.tensor for a in expected.side.arguments]
    if accumulation in (Accumulation.NONE, Accumulation.FEW) or not tensors:
        return 1
    if accumulation is Accumulation.REPEATED:
        return _repeats([a for a in expected.side.arguments if a.slot.argument in _INDICES])
    largest = max(t.numel() for t in tensors)
    if accumulation is Accumulation.REDUCED:
        if result.numel() >= largest:  # softmax, layer norm: each element has the sum of its row
            return max((n for t in tensors for n in t.shape), default=1)
        return int(max(1, largest // max(1, result.numel())))
    if accumulation is Accumulation.INNER:
        factor = next((a.tensor for a in expected.side.arguments if a.slot.argument in _FIRST_FACTORS), tensors[0])
        return int(max(1, factor.shape[-1] if factor.dim() else 1))
    if accumulation is Accumulation.WINDOW:
        weight = next((a.tensor for a in expected.side.arguments if "weight" in a.slot.name), None)
        if weight is None or not weight.dim():
            return int(max(1, largest))
        return int(max(1, weight.numel() // max(1, weight.shape[0])))
    return int(max(1, largest))


# The names of the index argument in ops that write by index.
_INDICES = ("index", "indices")


def _repeats(indices: Sequence[Argument]) -> int:
    """Return the largest number of indices that name one element. Indices of several dimensions name it together."""
    read = [a.tensor for a in indices if a.tensor.numel() and a.tensor.dtype in (torch.int32, torch.int64)]
    counts = [int(t.reshape(-1).unique(return_counts=True)[1].max()) for t in read]
    together = min if len({t.shape for t in read}) == 1 else max  # an index that is broadcast repeats its elements
    return together(counts, default=1)


def position_of(outcome: CallOutcome, argument: int) -> int | None:
    """Return the position of the result that is this argument, or lies in its storage; None if there is none."""
    wanted = outcome.side.arguments[argument].tensor
    for i, (_, leaf) in enumerate(outcome.leaves):
        if leaf is wanted:
            return i
    for i, (_, leaf) in enumerate(outcome.leaves):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and storages.same_storage(leaf, wanted):
            return i
    return None
