"""The judgement of one case: both calls in this process, and every difference found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from conformance import ambient
from conformance.ambient import Ambient
from conformance.backends import Capabilities
from conformance.contexts import PLAIN, Context
from conformance.judging import (
    bringup,
    device_memory,
    distribution,
    facts,
    kernels,
    oracle,
    private,
    repetition,
    storages,
    widening,
)
from conformance.judging.device_calls import DeviceCalls
from conformance.judging.lost_device import Loss
from conformance.judging.oracle import Caller, CallOutcome
from conformance.judging.other_references import OtherReferences
from conformance.judging.outcomes import Comparison, error_parity
from conformance.judging.reference import OF_NUMBERS, NotJudged, Reference
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import CPU, DeviceLacks, Side, Twins, lacks_dtype
from conformance.judging.views import Unreadable, all_work, can_copy
from conformance.plan.case import Case
from conformance.plan.wider import dtype_on_cpu
from conformance.records import Mismatch
from conformance.support.lines import error_line
from conformance.torch_versions import lacking_operator
from conformance.vocabulary import Check, Fact, Route

#: Layouts in which only random calls are made again: nothing else compares their values.
DRAWN_ALONE = ("as_strided", "expanded", "sizes", "variants", "variants_strided")

#: Layouts in which the random generators are watched around a call. In no other layout would this make a difference.
WITH_GENERATORS = ("contiguous", "variants", "zero_size")

#: Layouts in which a native kernel is called again over filled memory: its workspaces depend on sizes and arguments.
OVER_FILLED_MEMORY = ("sizes", "variants")

#: Checks whose findings are the device's fault, whether or not CPU's result can serve as a reference.
NEVER_EXCUSED = frozenset({Check.REDZONE, Check.STATE})

LOST_EARLIER = "an earlier call of the case raised, and the device cannot be used since"
OWN = "the sample has what CPU's kernel of the forward keeps; the device's kernel is right with what its own keeps"
CPU_ALONE = "the backend has no kernel, and torch's own for all devices takes CPU memory alone"

Counters = tuple[int, int] | None


@dataclass(slots=True)
class CaseResult:
    """The result of one case. ``skipped`` says why nothing could be compared; else, empty ``mismatches`` mean equal."""

    mismatches: list[Mismatch] = field(default_factory=list)
    skipped: str = ""
    lacks: str = ""  # if a native kernel is skipped: the overload that it calls and that has no kernel
    tainted: bool = False  # the process cannot be trusted any more: memory or other state may be damaged
    raw_ns: int = 0  # nanoseconds inside the calls of both sides
    left_out: str = ""  # of a scenario: the results that could not be compared, although others could
    raised: CallOutcome | None = None  # the device's outcome, if it raised and cannot be used any more


class Judge:
    """The judge of cases of one overload, which runs them on CPU and on the device, and compares."""

    def __init__(
        self, twins: Twins, backend: Capabilities, op: Callable[..., Any], route: Route, criteria: Criteria, seed: int,
        context: Context = PLAIN,
    ) -> None:  # fmt: skip
        self._twins = twins
        self._backend = backend
        self._route = route
        self._criteria = criteria
        self._context = context
        self._op = op
        seed_of_draws = seed if criteria.random else None
        self._calls = DeviceCalls(op, twins, backend, context, seed_of_draws)
        self._device = self._calls.device
        self._on_cpu = Caller(op, seed_of_draws)
        self._comparison = Comparison(criteria, route, self._device)
        self.reference = Reference(self._on_cpu, twins, criteria, self._comparison, context)
        self._loss = Loss(backend)

    @property
    def has_lost_device(self) -> bool:
        """Whether the device raised, and has raised at every request since: only another process can use it."""
        return self._loss.is_known

    def take_late_error(self) -> BaseException | None:
        """Return the error of queued work that a request to the device has met, and forget it."""
        return self._loss.take_late_error()

    def judge(self, case: Case, on_phase: Callable[[str], None] | None = None) -> CaseResult:
        """Run and compare one case.

        Calls ``on_phase`` with "cpu" or "device" before each side, so that a caller knows where the process died.
        """
        self._prepare(case)
        live = partial(self._judge_call, case)
        try:
            result = self._judge(case, live, lambda: self._calls.over_soiled(case), on_phase or _ignore)
        except Exception:
            self._loss.ask()
            raise
        result.mismatches = self._memory_named(case, result.mismatches)
        result.mismatches = widening.noted(result.mismatches, case)
        result.raw_ns = self._calls.raw_ns + self._on_cpu.raw_ns
        return result

    def _memory_named(self, case: Case, mismatches: list[Mismatch]) -> list[Mismatch]:
        """Return the mismatches. Wrong values that depend on the content of fresh memory become "uninitialized"."""
        if self.has_lost_device or not any(m.check is Check.VALUE for m in mismatches):
            return mismatches

        def again(seed: int | None) -> CallOutcome:
            outcome = self._calls.make(case, seed)
            self._loss.note(outcome)
            return outcome

        try:
            following = repetition.following_memory(self._backend, again)
        except (Unreadable, DeviceLacks):
            return mismatches
        wrong = (m.check is Check.VALUE and m.subject in following for m in mismatches)
        return [repetition.of_memory(m) if is_of_memory else m for m, is_of_memory in zip(mismatches, wrong)]

    def _prepare(self, case: Case) -> None:
        """Take the op of both sides from the context, and set their times to 0."""
        self._calls.prepare(case)
        self._on_cpu.raw_ns = 0
        self._on_cpu.op = widening.on_cpu(self._context.on_cpu(self._op, case.cell.overload, case.variant), case)

    def reference_is_sound(self, case: Case) -> bool:
        """Return whether CPU alone, called as the context calls it, gives the same bits whatever memory holds.

        The calls before that of the case are tested as well: CPU must survive every call that a device has to
        survive.
        """
        for one in (*case.before, case):
            self._prepare(one)
            if not self.reference.is_sound(one):
                return False
        return True

    def differs(self, case: Case) -> bool:
        """Return whether the device differs from CPU in a case. CPU is not doubted: a similar case has been judged."""
        self._prepare(case)
        try:
            expected = self.reference.outcome(case)
            return bool(self._judge_call(case, expected, self._others(case, expected)).mismatches)
        except (NotJudged, DeviceLacks):
            return False
        except Unreadable:
            return True

    def judge_outcome(self, case: Case, actual: CallOutcome) -> CaseResult:
        """Compare the outcome of a call on the device, made elsewhere with the arguments of ``case``, with CPU's.

        The call is not made again. Therefore the facts that have to be measured around a call are unknown: memory,
        routes, version counters (those of a live tensor have moved before). CPU's default generator is restored
        afterwards.
        """
        with torch.random.fork_rng(devices=()):
            recorded = partial(self._differences, actual=actual)
            return self._judge(case, lambda *of: CaseResult(recorded(*of)), lambda: actual, _ignore)

    def _judge(
        self, case: Case, compared: Callable[[CallOutcome, OtherReferences], CaseResult],
        actual: Callable[[], CallOutcome], tell: Callable[[str], None],
    ) -> CaseResult:  # fmt: skip
        """Return the comparison of CPU's outcome with the device's. If they differ, doubt CPU.

        ``compared`` compares CPU's outcome with the device's. ``actual`` returns the device's outcome once more,
        because the compared outcome had to be freed before the search for leaks.
        """
        if self._criteria.facts.cpu_alone and self._route is Route.COMPOSITE:
            return CaseResult(skipped=CPU_ALONE)
        left_out = self._context.leaves_out(case.cell.overload, self._backend)
        if left_out:
            return CaseResult(skipped=left_out)
        try:
            tell("cpu")
            expected = self.reference.outcome(case)
            unkept = self._not_copied(case, expected)
            if unkept:
                return CaseResult(skipped=f"copies of {unkept} do not come back from the device as they were")
            tell("device")
            others = self._others(case, expected)
            result = compared(expected, others)
            raised = result.raised
            if result.mismatches and not any(m.check in NEVER_EXCUSED for m in result.mismatches):
                result.mismatches = self._with_own(case, expected, result.mismatches)
                again = actual if raised is None else lambda: raised
                result.mismatches = self.reference.doubt(case, expected, result.mismatches, again, others)
        except NotJudged as e:
            return CaseResult(skipped=e.why, tainted=e.tainted)
        except DeviceLacks as e:
            return CaseResult(skipped=f"the device has no {e.what}: {error_line(e.__cause__)}")
        except Unreadable as e:
            return CaseResult([_unreadable(e)])
        return result

    def _others(self, case: Case, expected: CallOutcome) -> OtherReferences:
        may_round = partial(self.reference.may_round, case, expected)
        half_unit = partial(oracle.half_unit_of_results, expected)
        return OtherReferences(case, self._twins, self._on_cpu.op, may_round, half_unit)

    def _with_own(self, case: Case, expected: CallOutcome, mismatches: list[Mismatch]) -> list[Mismatch]:
        """Return the mismatches after a backward's kernel gets the private results of the forward on its own device.

        Raises NotJudged if there are none then. Returns ``mismatches`` for other ops, or if more than numbers differ.
        """
        numbers = expected.error is None and {m.check for m in mismatches} <= OF_NUMBERS
        own = private.with_own(self._op) if numbers and self._route is Route.NATIVE and not self._context.name else None
        if own is None or self.has_lost_device:
            return mismatches
        cpu = oracle.call(own, self._twins.side(case, CPU))
        device = oracle.call(own, self._twins.side(case, self._device), synchronize=self._backend.synchronize)
        if cpu.error is not None or device.error is not None:
            return mismatches
        others = OtherReferences(case, self._twins, own, half_unit=partial(oracle.half_unit_of_results, cpu))
        found = self._comparison.differences(cpu, device, others)
        if not found:
            raise NotJudged(OWN)
        return found

    def _not_copied(self, case: Case, expected: CallOutcome) -> str:
        """Return a dtype of the call's arguments or results that the bring-up gate found broken; "" if there is none.

        Ops that copy are judged all the same, because they are the cause.
        """
        if all_work() or bringup.copies(case.cell):
            return ""
        leaves = (leaf for _, leaf in expected.leaves if isinstance(leaf, torch.Tensor))
        tensors = (*(a.tensor for a in expected.side.arguments), *leaves)
        return next((str(t.dtype).removeprefix("torch.") for t in tensors if not can_copy(t.dtype)), "")

    def _need_dtypes(self, case: Case, expected: CallOutcome, raised: BaseException) -> None:
        """Raise DeviceLacks if the device has no tensors of a dtype that the call needs, so that no call can succeed.

        An argument of such a dtype may exist, because arguments are views of bytes.
        """
        leaves = (leaf for _, leaf in expected.leaves if isinstance(leaf, torch.Tensor))
        dtypes = {t.dtype for t in (*leaves, *(a.tensor for a in expected.side.arguments))}
        if self._route is Route.COMPOSITE:
            dtypes |= kernels.dtypes(lambda: self.reference.again(case))
        for dtype in sorted(dtypes, key=str):
            if lacks_dtype(dtype, self._device):
                raise DeviceLacks(f"tensors of {str(dtype).removeprefix('torch.')}") from raised

    def kernels(self, case: Case, *, on_cpu: bool = False) -> list[str]:
        """Call the op once more, on the device or on CPU, and return the operators that run there, in order."""
        self._prepare(case)
        if on_cpu:
            return kernels.names(lambda: self.reference.again(case))
        return self._calls.kernels(case)

    def _judge_call(self, case: Case, expected: CallOutcome, others: OtherReferences) -> CaseResult:
        """Make the call on the device. Return its differences from CPU, and its leaks of device memory."""
        for earlier in case.before:
            if self._loss.is_met_by(self._calls.make(earlier)):
                return CaseResult(skipped=LOST_EARLIER)
        before = self._backend.live_memory()
        result = self._compare_call(case, expected, others)
        if result.raised is not None:
            return result
        leaked = device_memory.leak(before, self._backend.live_memory())
        if leaked and (self._backend.bare or min(leaked.facts["blocks"], leaked.facts["bytes"]) < 0):
            leaked = self._calls.left_again(case)
        if leaked and not result.skipped and Check.LEAK not in self._context.unchecked:
            result.mismatches.append(leaked)
        return result

    def _compare_call(self, case: Case, expected: CallOutcome, others: OtherReferences) -> CaseResult:
        before = self._backend.route_counters()
        watched = self._watched(case)
        actual = self._calls.over_soiled(case, watched)
        after = self._backend.route_counters()
        if self._loss.is_met_by(actual):
            return CaseResult(self._loss.differences(expected, actual), raised=actual)
        changed = self._changed(case, watched, expected, actual)
        found = device_memory.damage(self._backend, actual) + changed
        refused = oracle.lacks_kernel(actual.error, self._route, expected.error) or self._context.refuses(actual.error)
        refused |= actual.error is not None and bool(dtype_on_cpu(case))  # a device need not serve a dtype CPU lacks
        if refused and not found:
            return CaseResult(skipped=error_line(actual.error), lacks=self._lacks(case, actual.error))
        returned = expected.error is None and actual.error is None
        if expected.error is None and actual.error is not None:
            self._need_dtypes(case, expected, actual.error)
        if returned:
            found += route_taken(self._route, before, after)
        found += self._differences(expected, others, actual, partial(self._twins.side, case, self._device))
        if returned and not found:
            found = self._made_again(case, expected, others, actual)
        return CaseResult(found, tainted=bool(changed))

    def _made_again(
        self, case: Case, expected: CallOutcome, others: OtherReferences, actual: CallOutcome
    ) -> list[Mismatch]:
        """Make a call that agrees with CPU again on the device. Return the differences in its bits or in its draws."""
        on_device, on_cpu = partial(self._calls.make, case), partial(self.reference.again, case)
        layout, seed = case.cell.layout, self._calls.seed
        if self._is_repeated(case):
            calls = distribution.FEW_CALLS if layout in DRAWN_ALONE else distribution.CALLS
            found = repetition.differences(actual, self._criteria, self._backend, seed, on_device, on_cpu, calls)
            if found or seed is None or self._context.name:
                return found
            in_turn = (partial(self._calls.in_turn, case, device) for device in (self._device, CPU))
            return repetition.same_stream(actual, self._criteria, *in_turn)
        if layout in OVER_FILLED_MEMORY and self._route is Route.NATIVE:
            send = partial(self._twins.side, case, self._device)
            differing = partial(self._differences, expected, others, send=send)
            return repetition.uninitialized(actual, self._backend, on_device, differing)
        if layout == "values" and seed is not None:
            few = distribution.FEW_CALLS
            return repetition.foreign_draws(actual, self._criteria, seed, on_device, on_cpu, few)
        return []

    def _lacks(self, case: Case, error: BaseException | None) -> str:
        """Return the overload without a kernel that ended a native kernel, "" if it is unknown.

        In a context, torch itself calls further operators.
        """
        named = lacking_operator(str(error)) if self._route is Route.NATIVE and not self._context.name else ""
        return named if named != case.cell.overload else ""

    def _watched(self, case: Case) -> Ambient | None:
        """Return the state to read around the device's call. None in a context, which may set this state itself."""
        if self._context.name:
            return None
        return ambient.of(self._device, generators=case.cell.layout in WITH_GENERATORS)

    def _changed(
        self, case: Case, watched: Ambient | None, expected: CallOutcome, actual: CallOutcome
    ) -> list[Mismatch]:
        """Return a mismatch for each change of state besides memory by the device's call.

        Random ops may draw. Where kernels for CPU serve them, they draw from CPU's generator. An op also counts as
        random for these arguments if CPU's call draws. A random op that both sides refuse, or that is given a
        generator, may draw only if CPU's call does: otherwise the call changes the numbers that a program draws after
        it.
        """
        changes = watched.changes(*actual.ambient) if watched else []
        refused = expected.error is not None and actual.error is not None
        random = self._criteria.random and not refused and not actual.side.generators
        if watched and any(c.is_draw for c in changes) and (random or self._draws_on_cpu(case, watched)):
            own = self._device.type != CPU.type  # a device has generators of its own, and native kernels use them
            on_host = self._criteria.random and self._route is Route.NATIVE and own
            changes = [c for c in changes if not c.is_draw or (on_host and c.is_draw_on_host)]
        return [Mismatch(Check.STATE, "", facts.changed(one)) for one in changes]

    def _draws_on_cpu(self, case: Case, watched: Ambient) -> bool:
        """Return whether CPU's call draws random numbers."""
        again = self._on_cpu(self._twins.side(case, CPU), ambient=watched)
        return any(c.is_draw_on_host for c in watched.changes(*again.ambient))

    def _is_repeated(self, case: Case) -> bool:
        """Return whether the call is made again, to compare its bits or its draws."""
        draws = self._criteria.random and case.cell.layout in DRAWN_ALONE
        return case.cell.layout == "contiguous" or draws or self._context.repeats(case.variant)

    def _differences(
        self, expected: CallOutcome, others: OtherReferences, actual: CallOutcome,
        send: Callable[[], Side] | None = None,
    ) -> list[Mismatch]:  # fmt: skip
        """Return the differences of both sides' results or errors, and of their storages.

        ``send`` returns the arguments of a live call once more; it is None for a recorded call. For a live call,
        version counters are compared too, and storages are not fetched if only one side raised: a device that has
        just raised may not answer. The storages of a recorded call have been fetched already.
        """
        live = send is not None
        broken = _broken(self._context, expected, actual)
        if broken:
            return [broken]
        parity = error_parity(expected.error, actual.error)
        if parity and live:
            return [parity]
        found: list[Mismatch] = [parity] if parity else []
        fetched = storages.Fetched(expected.side, actual.side)
        if expected.error is None and not parity:
            found += self._comparison.results(expected, actual, others)
            found += self._comparison.written(expected, actual, others, fetched)
            counted = live and Check.VERSION not in self._context.unchecked
            found += storages.versions(expected.side, actual.side) if counted else []
            found += storages.moved(expected.side, actual.side, send) if send else []
        early = expected.error is not None and not self._context.name
        found += fetched.differences(send)
        return found + fetched.of_refused(others.refused_early, send) if early else found


def _broken(context: Context, expected: CallOutcome, actual: CallOutcome) -> Mismatch | None:
    """Return a mismatch if the device broke a rule of the context: the context's call raises AssertionError."""
    if not context.name or expected.error is not None or not isinstance(actual.error, AssertionError):
        return None
    facts = {"kind": Fact.CONTEXT.value, "context": context.name, "broken": str(actual.error)}
    return Mismatch(Check.CONTEXT, "", facts)


def _unreadable(raised: Unreadable) -> Mismatch:
    """Return the mismatch of a device that raised when an argument or a result was read after the call."""
    found = {"kind": Fact.UNREADABLE.value, "device": facts.error(raised.__cause__)}
    return Mismatch(Check.ERROR_PARITY, "", found)


def _ignore(phase: str) -> None:
    """No-op callback."""


def route_taken(route: Route, before: Counters, after: Counters) -> list[Mismatch]:
    """Return a mismatch if the registered ``route`` did not serve the call, by the backend's counters of calls."""
    if before is None or after is None:
        return []
    native, fallback = after[0] - before[0], after[1] - before[1]
    missing = (route is Route.NATIVE and native == 0) or (route is Route.FALLBACK and fallback == 0)
    found = {"kind": Fact.ROUTE.value, "registered": route.value, "native": native, "fallback": fallback}
    return [Mismatch(Check.ROUTE, "", found)] if missing else []
