"""Repetition of a call that agreed with CPU: for the same bits over other fresh memory, and for CPU's distribution."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import torch

from conformance.backends import Capabilities
from conformance.backends.capabilities import SOIL
from conformance.judging import bits, dependence, distribution, facts, support
from conformance.judging.draws import Draws, flat
from conformance.judging.oracle import CallOutcome
from conformance.judging.outcomes import error_parity
from conformance.judging.tolerances import Criteria
from conformance.judging.views import host_copy
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

# The byte that fills fresh device memory in the second call: NaN in most floating dtypes, and no legal bool.
REFILL = 0xFF
# After this many calls, no more are made to tell whether a position that has held one value always does.
MOST_FOR_POSITIONS = 80
# In results with more draws than EACH_POSITION and at most AT_ENDS, ENDS draws at each end are drawn often: a kernel
# ends there.
AT_ENDS = 8400
ENDS = 128

Again = Callable[[int | None], CallOutcome]  # makes the call of a case again; None: with the first seed
Turns = Callable[[], Iterator[CallOutcome]]  # makes call after call, with the same arguments and no seed


def differences(
    first: CallOutcome, criteria: Criteria, backend: Capabilities, seed: int | None, on_device: Again, on_cpu: Again,
    calls: int = distribution.CALLS,
) -> list[Mismatch]:  # fmt: skip
    """Return the differences of further calls; ``first``: the device's outcome of a call that agrees with CPU's.

    ``seed``: of the first call; None for an overload that does not draw. ``calls``: how often the call is made for
    draws.
    """
    if not criteria.stable:
        return []
    if criteria.random and not backend.seedable:
        return [] if seed is None else _draws(first, criteria, seed, on_device, on_cpu, calls)
    over_filled = partial(_over_filled, first, backend, on_device)
    second = over_filled()
    if second.error is not None:
        return [_raised_again(second)]
    name = _differing(first, second, criteria)
    if name:
        return [_why_differing(second, name, criteria, over_filled)]
    return [] if seed is None else _draws(first, criteria, seed, on_device, on_cpu, calls)


def uninitialized(
    first: CallOutcome, backend: Capabilities, on_device: Again, differences: Callable[[CallOutcome], list[Mismatch]]
) -> list[Mismatch]:
    """Return differences that only a call over filled memory has, which depend on uninitialized memory.

    ``first`` agrees with CPU. The bits of two calls are not compared, because large sums need not have the same bits
    each time. ``differences`` returns the differences of a device outcome from CPU's.
    """
    if not backend.fills_memory:
        return []
    second = _over_filled(first, backend, on_device)
    if second.error is not None:
        return [_raised_again(second)]
    found = {"kind": Fact.FRESH_MEMORY.value, "byte": REFILL}
    return [Mismatch(Check.UNINITIALIZED, m.subject, found) for m in differences(second)[:1]]


def following_memory(backend: Capabilities, on_device: Again) -> set[str]:
    """Return the names of results and written arguments whose bits depend on fresh memory, and only on it.

    Raises Unreadable and DeviceLacks. Empty if a call raises.
    """
    if not backend.soils_memory:
        return set()
    with backend.soiled_memory():
        outcomes = [on_device(None)]
    with backend.fresh_memory(REFILL):
        outcomes += [on_device(None), on_device(None)]
    if any(outcome.error is not None for outcome in outcomes):
        return set()
    soiled, once, again = map(_tensors, outcomes)
    common = soiled.keys() & once.keys() & again.keys()
    return {name for name in common if not _same(soiled[name], once[name]) and _same(once[name], again[name])}


def _tensors(outcome: CallOutcome) -> dict[str, torch.Tensor]:
    """Return the strided results and the written arguments of a call, by their names."""
    results = {n: t for n, t in outcome.leaves if isinstance(t, torch.Tensor) and t.layout == torch.strided}
    return results | {a.slot.name: a.tensor for a in outcome.side.arguments if a.slot.written}


def of_memory(wrong: Mismatch) -> Mismatch:
    """Return a finding of uninitialized memory in place of wrong values over soiled memory."""
    found = {"kind": Fact.FRESH_MEMORY.value, "byte": SOIL, "difference": wrong.facts}
    return Mismatch(Check.UNINITIALIZED, wrong.subject, found)


def _over_filled(first: CallOutcome, backend: Capabilities, on_device: Again) -> CallOutcome:
    """Make the call again while fresh memory is filled."""
    leaves = (leaf for _, leaf in first.leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided)
    results = (leaf.untyped_storage().nbytes() for leaf in leaves)
    sizes = {*results, *(a.base.numel() for a in first.side.arguments)}
    with backend.fresh_memory(REFILL, sizes):
        return on_device(None)


def _raised_again(second: CallOutcome) -> Mismatch:
    found = {"kind": Fact.SECOND_CALL_RAISED.value, "error": facts.error(second.error)}
    return Mismatch(Check.DETERMINISM, "", found)


def _why_differing(
    second: CallOutcome, name: str, criteria: Criteria, over_filled: Callable[[], CallOutcome]
) -> Mismatch:
    """Return why bits differ. A third call over the second one's fresh memory shows whether memory is the cause."""
    third = over_filled()
    if third.error is not None or _differing(second, third, criteria):
        return Mismatch(Check.DETERMINISM, name, {"kind": Fact.UNSTABLE.value})
    return Mismatch(Check.UNINITIALIZED, name, {"kind": Fact.FRESH_MEMORY.value, "byte": REFILL})


def _differing(first: CallOutcome, second: CallOutcome, criteria: Criteria) -> str:
    """Return the first result whose bits are not the same in two calls; "" when there is none."""
    for i, ((name, a), (_, b)) in enumerate(zip(first.leaves, second.leaves, strict=True)):
        defined = criteria.drawn(i) or criteria.equivalence(i).is_of_values
        if defined and isinstance(a, torch.Tensor) and a.layout == torch.strided and not _same(a, b):
            return name
    return ""


def _drawn_result(first: CallOutcome, criteria: Criteria) -> int | None:
    """Return the position of the first drawn result of a call; None if there is none, or if it is no tensor."""
    i = next((i for i in range(len(first.leaves)) if criteria.drawn(i)), None)
    return None if i is None or not isinstance(first.leaves[i][1], torch.Tensor) else i


def foreign_draws(
    first: CallOutcome, criteria: Criteria, seed: int, on_device: Again, on_cpu: Again, calls: int
) -> list[Mismatch]:
    """Return a mismatch if the device draws numbers that CPU does not draw; ``first``: the device's outcome.

    For arguments that leave the distribution undefined, such as infinite ones: a number with chance 0 keeps chance 0.
    """
    i = _drawn_result(first, criteria)
    if i is None:
        return []
    name, draws = first.leaves[i]
    if not support.is_of_numbers(host_copy(draws)):
        return []
    try:
        theirs, ours = _drawn(_pairs(seed, i, on_device, on_cpu), calls)
    except _Raised as e:
        return e.parity
    found = support.compare(theirs, ours, name)
    return [found] if found else []


def _draws(
    first: CallOutcome, criteria: Criteria, seed: int, on_device: Again, on_cpu: Again, most: int
) -> list[Mismatch]:
    """Compare random results under several seeds on both sides, by their distribution."""
    i = _drawn_result(first, criteria)
    if i is None or first.leaves[i][1].numel() == 0:
        return []
    name, count = first.leaves[i][0], bits.real(first.leaves[i][1]).numel()
    calls = most if criteria.permutes else distribution.calls_for(count, most)
    try:
        theirs, ours = _drawn(_pairs(seed, i, on_device, on_cpu), calls)
        rules = (distribution.compare, dependence.compare, support.compare)
        differs = next((found for rule in rules if (found := rule(theirs, ours, name))), None)
        if not differs and distribution.EACH_POSITION < count <= AT_ENDS:
            ends = torch.cat((torch.arange(ENDS), torch.arange(count - ENDS, count)))
            of_ends = (tuple(_at(ends, t) for t in pair) for pair in _pairs(seed, i, on_device, on_cpu))
            theirs, ours = _drawn(of_ends, distribution.FEW_CALLS)
            if not theirs.are_constant:  # as draws of chance 0 or 1 are
                differs = dependence.stuck(theirs, ours, name, ends)
    except _Raised as e:
        return e.parity
    return [differs] if differs else []


def _at(places: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Return the draws at these flat indices, in their dtype. Some versions of torch cannot index some dtypes."""
    return flat(draws)[places].to(bits.real(draws).dtype)


class _Raised(Exception):
    """The error that a call raised. ``parity`` has a mismatch if the other side did not raise the same."""

    def __init__(self, parity: list[Mismatch]) -> None:
        super().__init__()
        self.parity = parity


def _pairs(seed: int, i: int, on_device: Again, on_cpu: Again) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield result ``i`` of CPU and of the device under one seed after the other. Raises _Raised."""
    for other in itertools.count(seed + 1):
        cpu, device = on_cpu(other), on_device(other)
        if cpu.error is not None or device.error is not None:
            parity = error_parity(cpu.error, device.error)
            raise _Raised([parity] if parity else [])
        yield cpu.leaves[i][1], host_copy(device.leaves[i][1])


def _drawn(pairs: Iterator[tuple[torch.Tensor, ...]], calls: int) -> tuple[Draws, Draws]:
    """Return the draws of CPU and of the device in ``calls`` calls, or in more if chance is not ruled out."""
    theirs, ours = Draws(), Draws()
    most = max(calls, distribution.WANTED)
    while len(ours) < min(calls, most):
        for side, draws in zip((theirs, ours), next(pairs), strict=True):
            side.add(draws)
        if len(ours) == calls and not theirs.are_constant:
            stuck = calls < MOST_FOR_POSITIONS and dependence.may_be_stuck(theirs, ours)
            doubtful = stuck or distribution.may_be_same(theirs, ours) or support.may_differ(theirs, ours)
            calls *= 2 if doubtful else 1
    return theirs, ours


def same_stream(first: CallOutcome, criteria: Criteria, on_device: Turns, on_cpu: Turns) -> list[Mismatch]:
    """Return a mismatch if unseeded calls on the device all draw the same, and CPU's never do.

    ``first``: the device's outcome of the call. A kernel that draws from a copy of its generator draws the same.
    """
    i = _drawn_result(first, criteria)
    if i is None:
        return []
    ours = list(_until_another(_turns(on_device, i)))
    if len(ours) < distribution.FEW_CALLS:
        return []
    theirs = list(_turns(on_cpu, i))
    pairs = itertools.combinations(theirs, 2)
    if len(theirs) < distribution.FEW_CALLS or any(torch.equal(a, b) for a, b in pairs):
        return []
    return [Mismatch(Check.DISTRIBUTION, first.leaves[i][0], {"kind": Fact.SAME_STREAM.value, "calls": len(ours)})]


def _turns(calls: Turns, i: int) -> Iterator[torch.Tensor]:
    """Yield the draws in result ``i`` of enough calls to tell chance from a fault, fewer if a call raises."""
    for outcome in itertools.islice(calls(), distribution.FEW_CALLS):
        if outcome.error is not None:
            return
        yield flat(host_copy(outcome.leaves[i][1])).clone()


def _until_another(draws: Iterator[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield draws as long as they equal the first."""
    first = next(draws, None)
    if first is not None:
        yield first
        yield from itertools.takewhile(lambda draw: torch.equal(draw, first), draws)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(bits.same_exactly(host_copy(a), host_copy(b)).all())
