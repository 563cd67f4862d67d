"""One case on both sides, in this process: what was compared, and every difference found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch

from conformance import aftermath, compare, distribution, equivalence, memory, oracle
from conformance.backends import Capabilities
from conformance.cases import Case
from conformance.compare import Mismatch
from conformance.ops.family import Equivalence
from conformance.oracle import Outcome
from conformance.rules import Rules, position_of
from conformance.torch_versions import has_no_memory
from conformance.twins import CPU, Twins, host_copy
from conformance.vocabulary import Check, Route

# Why a case is not judged whose reference is not defined.
UNSOUND = "the CPU reference does not agree with itself: for these arguments it reads memory that nobody wrote"

LAYOUT = "the CPU's own values depend on how its arguments lie in memory: it computes others from contiguous tensors"
LOST = "the CPU returns another tensor than the out= that it was given"
TWICE = "CPU writes to an expanded argument without a word: which of two writes to one element wins is nobody's promise"

# What fresh device memory holds in the second call: NaN in most floating dtypes, and no legal bool.
REFILL = 0xFF

Counters = tuple[int, int] | None


@dataclass(slots=True)
class Judgement:
    """What came of one case. ``skipped`` says why nothing could be compared; else ``mismatches`` empty means equal."""

    mismatches: list[Mismatch] = field(default_factory=list)
    skipped: str = ""
    tainted: bool = False  # the CPU may have written where it should not: the process is not to be trusted any more
    raw_ns: int = 0


class Judge:
    """Runs cases of one overload on CPU and on the device, and compares."""

    def __init__(
        self, twins: Twins, backend: Capabilities, op: Callable[..., Any], route: Route, rules: Rules, seed: int
    ) -> None:
        self._twins = twins
        self._backend = backend
        self._op = op
        self._route = route
        self._rules = rules
        self._device = torch.device(backend.device)
        self._seed = seed if rules.random else None
        self._raw_ns = 0  # in op calls of either side, since the case began

    def judge(self, case: Case, on_phase: Callable[[str], None] | None = None) -> Judgement:
        """Run and compare one case.

        ``on_phase`` is told "cpu" and "device" before each side, for whoever may have to say where the process died.
        """
        self._raw_ns = 0
        verdict = self._judge(case, on_phase or _ignore)
        verdict.raw_ns = self._raw_ns
        return verdict

    def judge_outcome(self, case: Case, actual: Outcome) -> Judgement:
        """Compare what a call on the device did, made by somebody else with the arguments of ``case``, with CPU's.

        Version counters are not compared: a live tensor's have moved before.
        """
        with torch.random.fork_rng(devices=()):
            if writes_twice(case) and self._writes_twice_in_peace(case):
                return Judgement(skipped=TWICE)
            expected = oracle.call(self._op, self._twins.side(case, CPU))
        if oracle.cannot_serve(expected.error):
            return Judgement(skipped=f"CPU: {_line(expected.error)}")
        if expected.error is None and writes_twice(case):
            return Judgement(skipped=TWICE)
        parity = error_parity(expected.error, actual.error)
        verdict = Judgement([parity] if parity else [])
        if not parity and expected.error is None:
            others = _References(case, self._twins, self._op)
            verdict.mismatches += self._results(expected, actual, others)
            verdict.mismatches += self._written(expected, actual, others)
        verdict.mismatches += aftermath.storages(expected.side, actual.side)
        if verdict.mismatches:
            doubt = self._doubt(case, expected, verdict, lambda: actual)
            if doubt:
                return Judgement(skipped=doubt)
        return verdict

    def _judge(self, case: Case, tell: Callable[[str], None]) -> Judgement:
        tell("cpu")
        try:
            if writes_twice(case) and self._writes_twice_in_peace(case):
                return Judgement(skipped=TWICE)
            expected = self._call(case, CPU)
        except (LookupError, RuntimeError) as e:
            return Judgement(skipped=f"the arguments cannot be made on CPU: {_line(e)}")
        if oracle.cannot_serve(expected.error):
            return Judgement(skipped=f"CPU: {_line(expected.error)}")
        if expected.error is None and writes_twice(case):
            return Judgement(skipped=TWICE, tainted=True)
        tell("device")
        before = memory.held(self._backend)
        verdict = self._on_device(case, expected)
        leaked = memory.leak(before, memory.held(self._backend))
        if leaked and not verdict.skipped:
            verdict.mismatches.append(leaked)
        if verdict.mismatches and not any(m.check is Check.REDZONE for m in verdict.mismatches):
            # Called once more: what the first call made had to be let go for the search for leaks.
            doubt = self._doubt(case, expected, verdict, lambda: self._call(case, self._device))
            if doubt:
                return Judgement(skipped=doubt, tainted=True)
        return verdict

    def _writes_twice_in_peace(self, case: Case) -> bool:
        """Whether the CPU writes to an expanded argument without a word, tried where it cannot do harm."""
        outcome = oracle.call(self._op, self._twins.roomy(case), self._seed)
        self._raw_ns += outcome.raw_ns
        return outcome.error is None

    def _doubt(self, case: Case, expected: Outcome, verdict: Judgement, actual: Callable[[], Outcome]) -> str:
        """Why the reference, not the device, may be what is wrong; "" when it holds. Asked only about a difference.

        ``actual``: what the device did, or does when it is asked once more.
        """
        if not self._agrees(case, expected):
            return UNSOUND
        if expected.error is None and _loses_out(expected):
            return LOST
        strided = bool(case.shared) or any(p.layout != "contiguous" for p in case.placements)
        if strided and expected.error is None and all(m.check is Check.VALUE for m in verdict.mismatches):
            return self._doubt_of_layout(case, expected, actual)
        return ""

    def _doubt_of_layout(self, case: Case, expected: Outcome, actual: Callable[[], Outcome]) -> str:
        """Whether the CPU gives other values for the same ones in contiguous tensors, and the device gives those.

        Of arguments that share memory nobody says what is right: there the CPU's disagreement is enough.
        """
        dense = oracle.call(self._op, self._twins.dense(case), self._seed)
        self._raw_ns += dense.raw_ns
        if dense.error is not None or len(dense.leaves) != len(expected.leaves) or self._all_agree(dense, expected):
            return ""
        return LAYOUT if case.shared or self._all_agree(dense, actual()) else ""

    def _all_agree(self, dense: Outcome, other: Outcome) -> bool:
        """Whether the results and the written arguments of two calls have the same values, however they lie."""
        if other.error is not None or len(dense.leaves) != len(other.leaves):
            return False
        leaves = enumerate(zip(dense.leaves, other.leaves, strict=True))
        pairs: list[tuple[int | None, Any, Any]] = [(i, a, b) for i, ((_, a), (_, b)) in leaves]
        for i, (a, b) in enumerate(zip(dense.side.arguments, other.side.arguments, strict=True)):
            if a.slot.written:
                pairs.append((position_of(dense, i), a.tensor, b.tensor))
        return all(self._agree(dense, *pair) for pair in pairs)

    def _agree(self, dense: Outcome, position: int | None, a: Any, b: Any) -> bool:
        """Whether a result agrees with that of the CPU's dense call as the device's has to."""
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return True
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.layout != torch.strided or b.layout != torch.strided:
            return _sparse("", a, b) is None
        b = b if b.device == CPU else host_copy(b)
        kind = self._rules.equivalence(position)
        if kind is Equivalence.METADATA or equivalence.holds(kind, _source(dense), a, b):
            return True
        if self._by_cpu or self._rules.exact:
            return compare.exact(a, b, "", has_signed_zeros(dense)) is None
        return compare.close(a, b, None, self._rules.closeness(dense, a), "") is None

    def reference_is_sound(self, case: Case) -> bool:
        """Whether the CPU gives the same bits for ``case`` whatever memory holds. Calls all that it is asked for."""
        oracle.float64(case, self._twins, self._op)
        return self._agrees(case, self._call(case, CPU))

    def _agrees(self, case: Case, first: Outcome) -> bool:
        return oracle.agrees_with_itself(first, lambda: self._call(case, CPU))

    def _call(self, case: Case, device: torch.device, seed: int | None = None) -> Outcome:
        wait = None if device == CPU else self._backend.synchronize
        outcome = oracle.call(self._op, self._twins.side(case, device), self._seed if seed is None else seed, wait)
        self._raw_ns += outcome.raw_ns
        return outcome

    def _on_device(self, case: Case, expected: Outcome) -> Judgement:
        before = self._backend.route_counters()
        actual = self._call(case, self._device)
        after = self._backend.route_counters()
        verdict = Judgement(memory.damage(self._backend, actual))
        if oracle.lacks_kernel(actual.error, self._route, expected.error) and not verdict.mismatches:
            verdict.skipped = _line(actual.error)
            return verdict
        parity = error_parity(expected.error, actual.error)
        if parity:
            verdict.mismatches.append(parity)
            return verdict
        if expected.error is None:
            others = _References(case, self._twins, self._op)
            verdict.mismatches += route_taken(self._route, before, after)
            verdict.mismatches += self._results(expected, actual, others)
            verdict.mismatches += self._written(expected, actual, others)
            verdict.mismatches += aftermath.versions(expected.side, actual.side)
        verdict.mismatches += aftermath.storages(expected.side, actual.side)
        if expected.error is None and not verdict.mismatches and case.cell.layout == "contiguous":
            verdict.mismatches += self._again(case, actual)
        return verdict

    # Results ------------------------------------------------------------------------------------------------------

    def _results(self, expected: Outcome, actual: Outcome, others: _References) -> list[Mismatch]:
        if len(expected.leaves) != len(actual.leaves):
            n, m = len(actual.leaves), len(expected.leaves)
            return [Mismatch(Check.SHAPE, f"the device returned {n} results, CPU {m}")]
        found = (self._result(expected, actual, i, others) for i in range(len(expected.leaves)))
        return [one for one in found if one]

    def _result(self, expected: Outcome, actual: Outcome, i: int, others: _References) -> Mismatch | None:
        name, want = expected.leaves[i]
        got = actual.leaves[i][1]
        if not isinstance(want, torch.Tensor) or not isinstance(got, torch.Tensor):
            return self._plain(name, want, got, i)
        if got.device != self._device and got.device.type != want.device.type:
            return Mismatch(Check.DEVICE, f"{name}: lies on {got.device}, not on {self._device}")
        if want.layout != torch.strided or got.layout != torch.strided:
            return _sparse(name, want, got)
        relation = None if self._rules.may_alias else aftermath.aliasing(expected, actual, i)
        differs = relation or compare.metadata(want, got, name)
        if differs and differs.check is Check.STRIDE and others.promoted_strides(i, want.dtype) == got.stride():
            differs = None
        if differs or has_no_memory(want) or aftermath.argument_of(expected.side, want) is not None:
            return differs  # a result that is an argument's storage is compared with that argument
        return self._values(expected, i, want, got, name, partial(others.leaf, i))

    def _plain(self, name: str, want: Any, got: Any, i: int) -> Mismatch | None:
        if type(want) is not type(got):
            return Mismatch(Check.DTYPE, f"{name}: {type(got).__name__} on the device, {type(want).__name__} on CPU")
        if want == got or (want != want and got != got) or self._rules.equivalence(i) is not Equivalence.EQUAL:
            return None
        if isinstance(want, (float, complex)) and self._route != Route.FALLBACK:
            return compare.close(torch.tensor(want), torch.tensor(got), None, compare.Closeness(), name)
        return Mismatch(Check.VALUE, f"{name}: {got!r} on the device, {want!r} on CPU")

    @property
    def _by_cpu(self) -> bool:
        """Whether the device's values come from the CPU's own kernel, which gives the same bits each time."""
        return self._route is Route.FALLBACK and self._rules.stable

    def _values(
        self,
        expected: Outcome,
        position: int | None,
        want: torch.Tensor,
        got: torch.Tensor,
        name: str,
        wide: Callable[[], torch.Tensor | None],
    ) -> Mismatch | None:
        """Equal bits settle it. Else the fallback has to be exact, and a kernel about as near to float64 as the CPU."""
        kind = self._rules.equivalence(position)
        if kind is Equivalence.METADATA:
            return None
        here = host_copy(got)
        if compare.same_bits(want, here):
            return None
        if self._by_cpu:
            return compare.exact(want, here, name, has_signed_zeros(expected))
        if kind is not Equivalence.EQUAL and equivalence.holds(kind, _source(expected), want, here):
            return None
        if self._rules.exact:
            return compare.exact(want, here, name, has_signed_zeros(expected))
        return compare.close(want, here, wide(), self._rules.closeness(expected, want), name)

    def _written(self, expected: Outcome, actual: Outcome, others: _References) -> list[Mismatch]:
        """The values of written arguments, which are results too."""
        found: list[Mismatch] = []
        for i, (want, got) in enumerate(zip(expected.side.arguments, actual.side.arguments, strict=True)):
            if not want.slot.written:
                continue
            name = want.slot.name
            differs = compare.metadata(want.tensor, got.tensor, name)
            if not differs:
                at = position_of(expected, i)
                differs = self._values(expected, at, want.tensor, got.tensor, name, partial(others.argument, i))
            found += [differs] if differs else []
        return found

    # The same again -----------------------------------------------------------------------------------------------

    def _again(self, case: Case, first: Outcome) -> list[Mismatch]:
        """A second call, with the same seed and over other fresh memory, has to give the same bits."""
        if not self._rules.stable:
            return []
        with self._backend.fresh_memory(REFILL):
            second = self._call(case, self._device)
            if second.error is not None:
                return [Mismatch(Check.DETERMINISM, f"the second call raised {_line(second.error)}, the first did not")]
            name = self._differing(first, second)
            if name:
                return [self._why_differing(case, second, name)]
        return self._draws(case, first) if self._rules.random else []

    def _why_differing(self, case: Case, second: Outcome, name: str) -> Mismatch:
        """A third call over the same fresh memory as the second tells whether it was the memory that made the bits."""
        third = self._call(case, self._device)
        if third.error is not None or self._differing(second, third):
            return Mismatch(Check.DETERMINISM, f"{name}: two calls with the same arguments gave different bits")
        return Mismatch(Check.UNINITIALIZED, f"{name}: other bits when fresh device memory holds 0x{REFILL:02X}")

    def _differing(self, first: Outcome, second: Outcome) -> str:
        """The first result whose bits are not the same in two calls; "" when there is none."""
        for i, ((name, a), (_, b)) in enumerate(zip(first.leaves, second.leaves, strict=True)):
            defined = self._rules.drawn(i) or self._rules.equivalence(i) is not Equivalence.METADATA
            if defined and isinstance(a, torch.Tensor) and a.layout == torch.strided and not _same(a, b):
                return name
        return ""

    def _draws(self, case: Case, first: Outcome) -> list[Mismatch]:
        """Random results under several seeds on both sides, by their distribution."""
        i = next((i for i in range(len(first.leaves)) if self._rules.drawn(i)), None)
        if i is None or not isinstance(first.leaves[i][1], torch.Tensor) or first.leaves[i][1].numel() == 0:
            return []
        assert self._seed is not None  # an overload that draws is seeded
        calls = min(distribution.CALLS, 1 + distribution.WANTED // first.leaves[i][1].numel())
        ours: list[torch.Tensor] = []
        theirs: list[torch.Tensor] = []
        for seed in range(self._seed + 1, self._seed + 1 + calls):
            cpu, device = self._call(case, CPU, seed), self._call(case, self._device, seed)
            if cpu.error is not None or device.error is not None:
                parity = error_parity(cpu.error, device.error)
                return [parity] if parity else []
            theirs.append(cpu.leaves[i][1])
            ours.append(host_copy(device.leaves[i][1]))
        differs = distribution.compare(theirs, ours, first.leaves[i][0])
        return [differs] if differs else []


class _References:
    """The other references of a case, each computed when it is first asked for."""

    def __init__(self, case: Case, twins: Twins, op: Callable[..., Any]) -> None:
        self._make = partial(oracle.float64, case, twins, op)
        self._promoted = partial(oracle.promoted, case, twins, op)

    @cached_property
    def _outcome(self) -> Outcome | None:
        return self._make()

    def promoted_strides(self, i: int, dtype: torch.dtype) -> tuple[int, ...] | None:
        """The strides of result ``i`` where no argument has to be promoted to its ``dtype``; None where none has to."""
        outcome = self._promoted(str(dtype).removeprefix("torch."))
        leaf = outcome.leaves[i][1] if outcome and i < len(outcome.leaves) else None
        return leaf.stride() if isinstance(leaf, torch.Tensor) else None

    def leaf(self, i: int) -> torch.Tensor | None:
        """Result ``i``; None where there is no float64 reference."""
        if self._outcome is None or i >= len(self._outcome.leaves):
            return None
        leaf = self._outcome.leaves[i][1]
        return leaf if isinstance(leaf, torch.Tensor) else None

    def argument(self, i: int) -> torch.Tensor | None:
        """Written argument ``i`` after the call."""
        return None if self._outcome is None else self._outcome.side.arguments[i].tensor


def has_signed_zeros(expected: Outcome) -> bool:
    """Whether the CPU means the signs of its zeros.

    It negates complex numbers as 0 - x in its vector loops and as -x behind their end, so that the sign of a zero hangs
    on where it lies.
    """
    return not any(a.placement.bit and a.tensor.is_complex() for a in expected.side.arguments)


def _loses_out(expected: Outcome) -> bool:
    """Whether an out= argument is not among the results of a call that has results."""
    outs = [i for i, a in enumerate(expected.side.arguments) if a.slot.written and not a.slot.pool]
    return expected.returned is not None and any(position_of(expected, i) is None for i in outs)


def writes_twice(case: Case) -> bool:
    """Whether an argument that the op writes has several indices for one element."""
    pairs = zip(case.sample.tensors, case.placements, strict=True)
    return any(slot.written and placement.layout == "expanded" for slot, placement in pairs)


def _ignore(phase: str) -> None:
    """Nobody asked to be told."""


def _source(expected: Outcome) -> torch.Tensor | None:
    """The op's first tensor argument."""
    arguments = expected.side.arguments
    return arguments[0].tensor if arguments else None


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(compare.same_exactly(host_copy(a), host_copy(b)).all())


def _sparse(name: str, want: torch.Tensor, got: torch.Tensor) -> Mismatch | None:
    """Results without strides are compared by their layout and by the strided tensors they are made of."""
    if want.layout != got.layout:
        return Mismatch(Check.STRIDE, f"{name}: layout is {got.layout} on the device, {want.layout} on CPU")
    for part in ("_indices", "_values") if want.layout == torch.sparse_coo else ("values",):
        a: torch.Tensor = getattr(want, part)()
        b: torch.Tensor = getattr(got, part)()
        differs = compare.metadata(a, b, f"{name}.{part}") or compare.exact(a, host_copy(b), f"{name}.{part}")
        if differs:
            return differs
    return None


def route_taken(route: Route, before: Counters, after: Counters) -> list[Mismatch]:
    """The dispatcher's table says which route serves the overload; the backend's counters say which one did."""
    if before is None or after is None:
        return []
    native, fallback = after[0] - before[0], after[1] - before[1]
    if route is Route.NATIVE and native == 0:
        return [Mismatch(Check.ROUTE, "registered natively, but no native kernel ran", {"fallback": fallback})]
    if route is Route.FALLBACK and fallback == 0:
        return [Mismatch(Check.ROUTE, "served by the fallback, but the fallback did not run", {"native": native})]
    return []


def error_parity(expected: BaseException | None, actual: BaseException | None) -> Mismatch | None:
    """Where CPU raises, the device raises the same type; where it does not, neither does the device."""
    if type(expected) is type(actual):
        return None
    ours = f"raised {_line(actual)}" if actual else "raised nothing"
    theirs = f"raised {_line(expected)}" if expected else "raised nothing"
    return Mismatch(Check.ERROR_PARITY, f"the device {ours}; CPU {theirs}")


def _line(error: BaseException | None) -> str:
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"
