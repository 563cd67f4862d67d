"""One case on both sides, in this process: what was compared, and every difference found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.judging import compare, device_memory, distribution, facts, kernels, oracle, storages
from conformance.judging.oracle import Outcome
from conformance.judging.outcomes import Comparison, References, error_parity, first_line
from conformance.judging.reference import TWICE, UNSOUND, Calls, doubt, unsound, writes_twice
from conformance.judging.tolerances import Rules
from conformance.judging.twins import CPU, Side, Twins, host_copy
from conformance.ops.family import Equivalence
from conformance.plan.cases import Case
from conformance.vocabulary import Check, Fact, Mismatch, Route

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
        self._comparison = Comparison(rules, route, self._device)
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
            return Judgement(skipped=f"CPU: {first_line(expected.error)}")
        if expected.error is None and writes_twice(case):
            return Judgement(skipped=TWICE)
        parity = error_parity(expected.error, actual.error)
        verdict = Judgement([parity] if parity else [])
        if not parity and expected.error is None:
            others = References(case, self._twins, self._op)
            verdict.mismatches += self._comparison.results(expected, actual, others)
            verdict.mismatches += self._comparison.written(expected, actual, others)
        verdict.mismatches += storages.storages(expected.side, actual.side)
        if verdict.mismatches:
            why = self._doubt(case, expected, verdict, lambda: actual)
            if why:
                return Judgement(skipped=why)
        return verdict

    def _judge(self, case: Case, tell: Callable[[str], None]) -> Judgement:
        tell("cpu")
        try:
            if writes_twice(case) and self._writes_twice_in_peace(case):
                return Judgement(skipped=TWICE)
            expected = self._call(case, CPU)
        except (LookupError, RuntimeError) as e:
            return Judgement(skipped=f"the arguments cannot be made on CPU: {first_line(e)}")
        if oracle.cannot_serve(expected.error):
            return Judgement(skipped=f"CPU: {first_line(expected.error)}")
        if expected.error is None and writes_twice(case):
            return Judgement(skipped=TWICE, tainted=True)
        if self._rules.doubts(case.cell.layout) and unsound(expected, self._calls(case, lambda: expected)):
            return Judgement(skipped=UNSOUND, tainted=True)
        tell("device")
        before = device_memory.held(self._backend)
        verdict = self._on_device(case, expected)
        leaked = device_memory.leak(before, device_memory.held(self._backend))
        if leaked and not verdict.skipped:
            verdict.mismatches.append(leaked)
        if verdict.mismatches and not any(m.check is Check.REDZONE for m in verdict.mismatches):
            # Called once more: what the first call made had to be let go for the search for leaks.
            why = self._doubt(case, expected, verdict, lambda: self._call(case, self._device))
            if why:
                return Judgement(skipped=why, tainted=True)
        return verdict

    def _writes_twice_in_peace(self, case: Case) -> bool:
        """Whether the CPU writes to an expanded argument without a word, tried where it cannot do harm."""
        return self._call_with(self._twins.roomy(case)).error is None

    def _doubt(self, case: Case, expected: Outcome, verdict: Judgement, actual: Callable[[], Outcome]) -> str:
        return doubt(case, expected, verdict.mismatches, self._comparison, self._calls(case, actual))

    def _calls(self, case: Case, actual: Callable[[], Outcome]) -> Calls:
        return Calls(
            again=lambda: self._call(case, CPU),
            surrounded=lambda value: self._call_with(self._twins.surrounded(case, value)),
            dense=lambda: self._call_with(self._twins.dense(case)),
            device=actual,
        )

    def kernels(self, case: Case, *, on_cpu: bool = False) -> list[str]:
        """Call the op once more, on the device or on CPU; returns the operators that run there, in order.

        Damage that this call does to memory has been reported by the call before, and is not reported again.
        """
        if on_cpu:
            return kernels.names(lambda: self._call(case, CPU))
        side = self._twins.side(case, self._device)
        found = kernels.names(lambda: self._call_with(side, wait=self._backend.synchronize))
        self._backend.verify_memory()
        return found

    def reference_is_sound(self, case: Case) -> bool:
        """Whether the CPU gives the same bits for ``case`` whatever memory holds. Calls all that it is asked for."""
        oracle.float64(case, self._twins, self._op)
        return oracle.agrees_with_itself(self._call(case, CPU), lambda: self._call(case, CPU))

    def _call(self, case: Case, device: torch.device, seed: int | None = None) -> Outcome:
        wait = None if device == CPU else self._backend.synchronize
        return self._call_with(self._twins.side(case, device), seed, wait)

    def _call_with(self, side: Side, seed: int | None = None, wait: Callable[[], None] | None = None) -> Outcome:
        outcome = oracle.call(self._op, side, self._seed if seed is None else seed, wait)
        self._raw_ns += outcome.raw_ns
        return outcome

    def _on_device(self, case: Case, expected: Outcome) -> Judgement:
        before = self._backend.route_counters()
        actual = self._call(case, self._device)
        after = self._backend.route_counters()
        verdict = Judgement(device_memory.damage(self._backend, actual))
        if oracle.lacks_kernel(actual.error, self._route, expected.error) and not verdict.mismatches:
            verdict.skipped = first_line(actual.error)
            return verdict
        parity = error_parity(expected.error, actual.error)
        if parity:
            verdict.mismatches.append(parity)
            return verdict
        if expected.error is None:
            others = References(case, self._twins, self._op)
            verdict.mismatches += route_taken(self._route, before, after)
            verdict.mismatches += self._comparison.results(expected, actual, others)
            verdict.mismatches += self._comparison.written(expected, actual, others)
            verdict.mismatches += storages.versions(expected.side, actual.side)
        verdict.mismatches += storages.storages(expected.side, actual.side)
        if expected.error is None and not verdict.mismatches and case.cell.layout == "contiguous":
            verdict.mismatches += self._again(case, actual)
        return verdict

    # The same again -----------------------------------------------------------------------------------------------

    def _again(self, case: Case, first: Outcome) -> list[Mismatch]:
        """A second call, with the same seed and over other fresh memory, has to give the same bits."""
        if not self._rules.stable:
            return []
        with self._backend.fresh_memory(REFILL):
            second = self._call(case, self._device)
            if second.error is not None:
                found = {"kind": Fact.SECOND_CALL_RAISED.value, "error": facts.error(second.error)}
                return [Mismatch(Check.DETERMINISM, "", found)]
            name = self._differing(first, second)
            if name:
                return [self._why_differing(case, second, name)]
        return self._draws(case, first) if self._rules.random else []

    def _why_differing(self, case: Case, second: Outcome, name: str) -> Mismatch:
        """A third call over the same fresh memory as the second tells whether it was the memory that made the bits."""
        third = self._call(case, self._device)
        if third.error is not None or self._differing(second, third):
            return Mismatch(Check.DETERMINISM, name, {"kind": Fact.UNSTABLE.value})
        return Mismatch(Check.UNINITIALIZED, name, {"kind": Fact.FRESH_MEMORY.value, "byte": REFILL})

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


def _ignore(phase: str) -> None:
    """Nobody asked to be told."""


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(compare.same_exactly(host_copy(a), host_copy(b)).all())


def route_taken(route: Route, before: Counters, after: Counters) -> list[Mismatch]:
    """The dispatcher's table says which route serves the overload; the backend's counters say which one did."""
    if before is None or after is None:
        return []
    native, fallback = after[0] - before[0], after[1] - before[1]
    missing = (route is Route.NATIVE and native == 0) or (route is Route.FALLBACK and fallback == 0)
    found = {"kind": Fact.ROUTE.value, "registered": route.value, "native": native, "fallback": fallback}
    return [Mismatch(Check.ROUTE, "", found)] if missing else []
