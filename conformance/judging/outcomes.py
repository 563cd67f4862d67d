"""Comparison of two outcomes of one case: their errors, their results and their written arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.judging import (
    angles,
    bits,
    compare,
    equivalence,
    facts,
    host_memory,
    phases,
    plain,
    relations,
    rounding,
    sparse,
    storages,
)
from conformance.judging.closeness import NOTHING_FURTHER, Further, beyond, far_apart, near
from conformance.judging.oracle import CallOutcome
from conformance.judging.other_references import OtherReference, OtherReferences
from conformance.judging.tolerances import Criteria, position_of
from conformance.judging.twins import Argument
from conformance.judging.views import can_fetch, device_of_memory, fetch, host_copy, over, view
from conformance.ops.family import Equivalence
from conformance.records import Mismatch
from conformance.torch_versions import has_no_memory
from conformance.vocabulary import Check, Fact, Route


class Comparison:
    """The comparison of outcomes of one overload, served by ``route`` on ``device``."""

    def __init__(self, criteria: Criteria, route: Route, device: torch.device) -> None:
        self._criteria = criteria
        self._route = route
        self.device = device

    @property
    def is_composite(self) -> bool:
        """Whether torch's own kernels for all devices serve the overload."""
        return self._route is Route.COMPOSITE

    def differences(self, expected: CallOutcome, actual: CallOutcome, others: OtherReferences) -> list[Mismatch]:
        """Return differences in results and in written arguments, of two calls that returned."""
        fetched = storages.Fetched(expected.side, actual.side)
        return self.results(expected, actual, others) + self.written(expected, actual, others, fetched)

    def results(self, expected: CallOutcome, actual: CallOutcome, others: OtherReferences) -> list[Mismatch]:
        """Return differences of the device's results from CPU's, at most one for each result."""
        if len(expected.leaves) != len(actual.leaves):
            n, m = len(actual.leaves), len(expected.leaves)
            return [Mismatch(Check.SHAPE, "", {"kind": Fact.COUNT.value, "device": n, "cpu": m})]
        sharing = storages.Sharing(expected), storages.Sharing(actual)
        found = (self._result(expected, actual, i, others, sharing) for i in range(len(expected.leaves)))
        return [one for one in found if one] or self._together(expected, actual)

    def _together(self, expected: CallOutcome, actual: CallOutcome) -> list[Mismatch]:
        """Return differences in results that each pass their own comparison."""
        found = self._of_vectors(expected, actual)
        if found:
            return [Mismatch(Check.VALUE, expected.leaves[found[0]][0], found[1])]
        unrelated = relations.apart(self._criteria, expected, actual)
        return [unrelated] if unrelated else []

    def _of_vectors(self, expected: CallOutcome, actual: CallOutcome) -> tuple[int, dict[str, Any]] | None:
        """Return the position and the facts of a result whose vectors are wrong though right up to phase, else None."""
        theirs, ours = ([leaf for _, leaf in outcome.leaves] for outcome in (expected, actual))
        apart = phases.apart(self._criteria.facts, theirs, ours)
        if apart:
            other = expected.leaves[apart.first][0]
            return apart.second, {"kind": Fact.PHASES.value, "other": other, "index": apart.index}
        turned = angles.turned(self._criteria.facts, theirs, ours)
        if not turned:
            return None
        numbers = {"distance": facts.value(turned.distance), "allowed": facts.value(turned.allowed)}
        return turned.result, {"kind": Fact.TURNED.value, "index": turned.index, **numbers}

    def written(
        self, expected: CallOutcome, actual: CallOutcome, others: OtherReferences, fetched: storages.Fetched
    ) -> list[Mismatch]:
        """Return differences in the written arguments, which are results too.

        Arguments that CPU writes although the schema does not say so, such as running statistics, count as written.
        """
        found: list[Mismatch] = []
        for i, (want, got) in enumerate(zip(expected.side.arguments, actual.side.arguments, strict=True)):
            unmarked = storages.is_written_unmarked
            if not want.slot.written and (fetched.same(i) or not unmarked(want, expected.side.arguments)):
                continue
            name = want.slot.name
            differs = compare.metadata(want.tensor, got.tensor, name, strided=can_fetch())
            if differs and _keeps_out(differs, want, got):
                differs = None
            if not differs and not fetched.same(i):
                at = position_of(expected, i)
                differs = self._values(expected, at, want.tensor, got.tensor, name, others.argument(i), want)
            found += [differs] if differs else []
        return found

    def same_values(self, one: CallOutcome, other: CallOutcome) -> bool:
        """Return whether ``other``, judged as the device's outcome, has the values of CPU's ``one``, in any layout."""
        return nowhere(self.wrong_values(one, other))

    def same_results(self, one: CallOutcome, other: CallOutcome) -> bool:
        """Return whether two calls returned the same results, whatever the written arguments hold."""
        return nowhere(self._wrong_results(one, other, None))

    def differ_grossly(self, one: CallOutcome, other: CallOutcome) -> bool:
        """Return whether two calls of CPU differ in an element by more than rounding can explain."""
        return any(far_apart(a, b) for a, b in zip(_tensors(one), _tensors(other), strict=True))

    def are_close(self, expected: CallOutcome, other: CallOutcome, others: OtherReferences) -> bool:
        """Return whether another call of CPU gives the values of ``expected`` within the tolerance of a native kernel.

        ``others``: the further references of ``expected``.
        """
        native = Comparison(self._criteria, Route.NATIVE, self.device)
        return nowhere(native.wrong_values(expected, other, others))

    def wrong_values(
        self, one: CallOutcome, other: CallOutcome, others: OtherReferences | None = None, *, left: bool = False
    ) -> list[torch.Tensor] | None:
        """Return elementwise where ``other``, judged as the device's outcome, has other values than CPU's ``one``.

        There is a mask for each result, then one for each argument. None if their number or their shapes differ.
        ``others``: the further references of ``one``, if there are any. ``left``: the mask of an argument that
        ``one`` left as it was.
        """
        of_left = torch.tensor(left)
        of_results = self._wrong_results(one, other, others)
        if of_results is None:
            return None
        of_arguments = [
            self._wrong_argument(one, other, i, of_results, others) if _is_written(argument, one) else of_left
            for i, argument in enumerate(one.side.arguments)
        ]
        return _complete([*of_results, *of_arguments])

    def _wrong_argument(
        self, one: CallOutcome, other: CallOutcome, i: int, of_results: list[torch.Tensor],
        others: OtherReferences | None,
    ) -> torch.Tensor | None:  # fmt: skip
        """Return the mask of written argument ``i``: that of a result, if both calls returned the argument itself."""
        a, b, position = one.side.arguments[i].tensor, other.side.arguments[i].tensor, position_of(one, i)
        if position is not None and one.leaves[position][1] is a and other.leaves[position][1] is b:
            return of_results[position]
        return self._wrong(one, position, a, b, others.argument(i) if others else None)

    def _wrong_results(
        self, one: CallOutcome, other: CallOutcome, others: OtherReferences | None
    ) -> list[torch.Tensor] | None:
        if other.error is not None or len(one.leaves) != len(other.leaves):
            return None
        pairs = enumerate(zip(one.leaves, other.leaves, strict=True))
        masks = _complete(
            [self._wrong(one, i, a, b, others.leaf(i) if others else None) for i, ((_, a), (_, b)) in pairs]
        )
        found = self._of_vectors(one, other) if nowhere(masks) else None
        if masks is not None and found is not None:
            masks[found[0]] = torch.tensor(True)
        return masks

    def _result(
        self,
        expected: CallOutcome,
        actual: CallOutcome,
        i: int,
        others: OtherReferences,
        sharing: tuple[storages.Sharing, storages.Sharing],
    ) -> Mismatch | None:
        name, want = expected.leaves[i]
        got = actual.leaves[i][1]
        if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
            return self._plain(expected, want, got, i)
        elsewhere = got.device != self.device and got.device.type != want.device.type
        if elsewhere or (got.is_cpu and self.device.type != "cpu" and self._left_on_host(i, others, sharing[1])):
            found = {"kind": Fact.DEVICE.value, "device": str(got.device), "wanted": str(self.device)}
            return Mismatch(Check.DEVICE, name, found)
        if self._criteria.equivalence(i) is Equivalence.PRIVATE and self._route is Route.NATIVE:
            return None
        if want.layout != torch.strided or got.layout != torch.strided:
            return sparse.difference(want, got, name)
        memory = device_of_memory(got)
        if memory not in (None, got.device):
            found = {"kind": Fact.MEMORY_DEVICE.value, "device": str(memory), "wanted": str(got.device)}
            return Mismatch(Check.DEVICE, name, found)
        relation = None if self._criteria.may_alias else storages.aliasing(*sharing, i)
        is_new = relation is not None and self._may_be_new(relation, others)
        relation = None if is_new else relation
        differs = relation or compare.metadata(want, got, name, strided=can_fetch())
        if differs and differs.check in (Check.STRIDE, Check.OFFSET):
            is_right = is_new or self._may_lie_elsewhere(differs, expected, actual, i, others, sharing)
            differs = None if is_right else differs
        of_argument = [side.argument(i) is not None for side in sharing]
        if differs or has_no_memory(want) or all(of_argument):
            return differs  # a result in an argument's storage is compared as that argument
        differs = self._values(expected, i, want, got, name, others.leaf(i))
        shares = of_argument[1] or sharing[1].earlier(i) is not None
        return differs if differs or shares else storages.oversized(want, got, name)

    def _may_lie_elsewhere(
        self, differs: Mismatch, expected: CallOutcome, actual: CallOutcome, i: int, others: OtherReferences,
        sharing: tuple[storages.Sharing, storages.Sharing],
    ) -> bool:  # fmt: skip
        """Return whether a result is right although strides or offset are not CPU's. ``differs``: that finding."""
        want, got = expected.leaves[i][1], actual.leaves[i][1]
        of_strides = differs.check is Check.STRIDE
        if of_strides and others.promoted_strides(i, want.dtype) == got.stride():
            return True
        argument = sharing[1].argument(i)
        if argument is not None:
            return _keeps_out(differs, expected.side.arguments[argument], actual.side.arguments[argument])
        if not of_strides:  # a copy, where CPU's result is a part of an argument
            is_copy = self._criteria.may_alias and sharing[0].argument(i) is not None
            return is_copy and got.storage_offset() == 0
        if storages.lies_as_new(want, got) or storages.lies_as_an_argument(want, got, actual.side):
            return True
        return self._criteria.facts.picks_kernel and storages.lies_densely(got)

    def _left_on_host(self, i: int, others: OtherReferences, sharing: storages.Sharing) -> bool:
        """Return whether a result on the host belongs on the device: see :meth:`OtherReferences.follows_arguments`.

        A composite op is torch's own, and some composite ops make their results on the host. A result in the storage
        of an argument is where that argument is.
        """
        valued = self._criteria.equivalence(i).is_of_values and sharing.argument(i) is None
        return valued and not self.is_composite and others.follows_arguments(i)

    def _may_be_new(self, relation: Mismatch, others: OtherReferences) -> bool:
        """Return whether a result may have memory of its own where CPU's shares: the schema promises no sharing.

        The strides and the offset of this result may differ from CPU's, too.

        A composite op is torch's own, so the device's ops below it have to share memory as CPU's do.
        """
        is_new = relation.facts["kind"] != Fact.IDENTITY.value and relation.facts["device"] is None
        return is_new and not self.is_composite and not others.shares_by_schema

    def _plain(self, expected: CallOutcome, want: Any, got: Any, i: int) -> Mismatch | None:
        """Return the difference of two results that are not both tensors."""
        name = expected.leaves[i][0]
        if type(want) is not type(got):
            ours, theirs = type(got).__name__, type(want).__name__
            return Mismatch(
                Check.DTYPE, name, {"kind": Fact.METADATA.value, "what": "type", "device": ours, "cpu": theirs}
            )
        if self._criteria.equivalence(i) is not Equivalence.EQUAL:
            return None
        if plain.same(want, got, _has_signed_zeros(self._criteria, expected)):
            return None
        if isinstance(want, (float, complex)) and self._route != Route.FALLBACK and not self._criteria.exact:
            return plain.close(expected, want, got, name)
        return Mismatch(Check.VALUE, name, {"kind": Fact.PLAIN.value, "device": repr(got), "cpu": repr(want)})

    @property
    def by_cpu(self) -> bool:
        """Whether the device's values come from the CPU's own kernel, which gives the same bits each time."""
        return self._route is Route.FALLBACK and self._criteria.stable

    def _values(
        self,
        expected: CallOutcome,
        position: int | None,
        want: torch.Tensor,
        got: torch.Tensor,
        name: str,
        reference: OtherReference,
        written: Argument | None = None,
    ) -> Mismatch | None:
        """Return the difference of two values, unless their bits are equal.

        The fallback has to be exact. A kernel has to be about as close to the float64 result as CPU is.
        """
        kind = self._criteria.equivalence(position)
        if not kind.is_of_values:
            return None
        here = _equal_or_copy(want, got)
        if here is None or bits.same_bits(want, here):
            return None
        stale = _stale(written) if written else None
        if self.by_cpu:
            return compare.exact(want, here, name, _has_signed_zeros(self._criteria, expected), stale)
        if _are_equivalent(kind, expected, want, here):
            return None
        if self._criteria.exact:
            signed_zeros = _has_signed_zeros(self._criteria, expected)
            return compare.exact(want, here, name, signed_zeros, stale, self._moved_from(expected))
        closeness = self._criteria.closeness(expected, want)
        if near(want, here, closeness):
            return self._directed(want, here, name, reference)
        further = self._further(want.dtype, reference)
        differs = compare.close(want, here, reference.float64(), closeness, name, further, stale)
        return differs or self._directed(want, here, name, reference)

    def _directed(
        self, want: torch.Tensor, here: torch.Tensor, name: str, reference: OtherReference
    ) -> Mismatch | None:
        """Return a finding if elements within their bounds are all rounded in one direction."""
        wide = reference.float64() if rounding.may_be_directed(want, here) else None
        found = rounding.directed(want, here, wide) if wide is not None and wide.shape == want.shape else None
        return Mismatch(Check.VALUE, name, found) if found else None

    def _further(self, dtype: torch.dtype, reference: OtherReference | None) -> Further:
        """Return the further references for a result of ``dtype`` that is beyond its bound."""
        if reference is None:
            return NOTHING_FURTHER
        spread = reference.spread if self._criteria.sums(dtype) else None
        return Further(spread, reference.own, reference.without_nan, reference.of_magnitudes)

    def _moved_from(self, expected: CallOutcome) -> list[torch.Tensor]:
        """Return the values of the read arguments before the call, if results are elements of these arguments."""
        read = [a for a in expected.side.arguments if a.slot.pool and self._criteria.facts.moves]
        return [view(a.before, a.tensor.dtype, a.placement) for a in read]

    def _wrong(
        self, one: CallOutcome, position: int | None, a: Any, b: Any, further: OtherReference | None
    ) -> torch.Tensor | None:
        """Return elementwise whether ``b`` disagrees with ``a``, a result of CPU's call ``one``, as a device's result.

        None if the two cannot be compared. The mask has one element for a non-tensor, and for a result that is judged
        as a whole.
        """
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return _NOWHERE
        if a.shape != b.shape or not torch.can_cast(a.dtype, b.dtype):
            return None
        if a.layout != torch.strided or b.layout != torch.strided:
            return _NOWHERE if sparse.difference(a, b, "") is None else None
        a, b = a.to(b.dtype), host_copy(b)  # an out= may have another dtype than the computation
        kind = self._criteria.equivalence(position)
        if not kind.is_of_values or bits.same_bits(a, b) or _are_equivalent(kind, one, a, b):
            return _NOWHERE
        if self.by_cpu or self._criteria.exact:
            return compare.differing(a, b, _has_signed_zeros(self._criteria, one), self._moved_from(one))
        closeness = self._criteria.closeness(one, a)
        if near(a, b, closeness):
            return _NOWHERE
        wide = further.float64() if further else None
        return beyond(a, b, wide, closeness, self._further(a.dtype, further))


_NOWHERE = torch.zeros((), dtype=torch.bool)


def _is_written(argument: Argument, outcome: CallOutcome) -> bool:
    """Return whether an argument is written: the schema says so, or CPU wrote it."""
    return argument.slot.written or storages.is_written_unmarked(argument, outcome.side.arguments)


def _tensors(outcome: CallOutcome) -> list[torch.Tensor]:
    """Return the strided results, and the written arguments after the call."""
    leaves = [leaf for _, leaf in outcome.leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    return leaves + [a.tensor for a in outcome.side.arguments if a.slot.written]


def _complete(masks: Sequence[torch.Tensor | None]) -> list[torch.Tensor] | None:
    """Return the masks if every result has one, else None."""
    found = [mask for mask in masks if mask is not None]
    return found if len(found) == len(masks) else None


def nowhere(masks: list[torch.Tensor] | None) -> bool:
    """Return whether there are masks of wrong elements, and no mask marks an element."""
    return masks is not None and not any(bool(mask.any()) for mask in masks)


def error_parity(expected: BaseException | None, actual: BaseException | None) -> Mismatch | None:
    """Return a mismatch unless both sides raised the same type of error, or neither raised."""
    if type(expected) is type(actual):
        return None
    found = {"kind": Fact.ERRORS.value, "device": facts.error(actual), "cpu": facts.error(expected)}
    return Mismatch(Check.ERROR_PARITY, "", found)


def _equal_or_copy(want: torch.Tensor, got: torch.Tensor) -> torch.Tensor | None:
    """Return None if the storages and strides of both tensors are equal; otherwise ``got`` on the CPU.

    Both have one dtype, shape, offset and bits.
    """
    if got.is_cpu or has_no_memory(got) or not can_fetch():
        return host_copy(got)
    whole = fetch(got)
    if want.stride() == got.stride() and host_memory.holds(want.untyped_storage(), whole):
        return None
    return over(whole, got)


def _stale(argument: Argument) -> torch.Tensor | None:
    """Return the values of a written argument before the call; None if the call gave it another size or dtype."""
    placed = argument.placement
    if argument.tensor.shape != torch.Size(placed.size) or argument.before.numel() % argument.tensor.element_size():
        return None
    return view(argument.before, argument.tensor.dtype, placed)


def _has_signed_zeros(criteria: Criteria, expected: CallOutcome) -> bool:
    """Return whether the signs of CPU's zeros are defined.

    They are undefined for an op that returns the larger or smaller of two equal numbers. CPU negates complex numbers
    as 0 - x in its vector loops and as -x behind their end, so the sign of a zero depends on its position.
    """
    negated = any(a.placement.bit and a.tensor.is_complex() for a in expected.side.arguments)
    return not criteria.facts.either_zero and not negated


def _are_equivalent(kind: Equivalence, expected: CallOutcome, want: torch.Tensor, got: torch.Tensor) -> bool:
    """Return whether a result that is not unique is as right as CPU's."""
    if kind is Equivalence.EQUAL:
        return False
    arguments = expected.side.arguments
    source = arguments[0].tensor if arguments else None
    return equivalence.holds(kind, source, want, got, stable=bool(expected.side.kwargs.get("stable")))


def _keeps_out(differs: Mismatch, want: Argument, got: Argument) -> bool:
    """Return whether strides or offset differ only because the device treats an ``out=`` as torch documents."""
    if differs.check not in (Check.STRIDE, Check.OFFSET):
        return False
    resized = differs.check is Check.STRIDE and got.tensor.shape != got.placement.size
    return storages.lies_as_documented(want, got) or (resized and storages.lies_as_new(want.tensor, got.tensor))
