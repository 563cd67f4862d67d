"""The judgement of one scenario: its runs on both sides in this process, and every difference found."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import torch

from conformance import contexts
from conformance.backends import Capabilities
from conformance.judging import compare, device_memory, facts, kernels
from conformance.judging.closeness import Closeness
from conformance.judging.judge import CaseResult
from conformance.judging.views import can_fetch, host_copy
from conformance.records import Mismatch
from conformance.scenarios.model import HIDDEN_BY, Broken, NotOffered, Results, Scenario, first_line
from conformance.vocabulary import Check, Fact

#: The distance from CPU's result that is allowed, in units in the last place: a program rounds many times, in another
#: order.
CLOSENESS_ULPS = 16.0
#: A program leaks if each of this many more runs keeps memory. Memory that is kept once is a cache.
MORE_RUNS = 3
#: The same without an adapter: torch's own counts include a workspace for each stream, and a device has several.
MORE_RUNS_BY_TORCH = 64
_SECOND = contexts.of("second_device")
_LEFT_OUT = 3  # at most this many results that are not offered are listed in a reason


def judge(scenario: Scenario, backend: Capabilities, on_phase: Callable[[str], None]) -> CaseResult:
    """Run a scenario on CPU and on the device, and compare the results.

    If the results agree, a scenario that is neither slow nor compiles runs on the second device as well, if there is
    one, while the first is current, and then in another thread. A scenario that leaves device memory allocated runs
    again, to tell a leak from a cache. Calls ``on_phase`` with "cpu" before the program runs on CPU, and with
    "device" before it runs on a device. Results that the device does not offer are not compared, and the returned
    result names them. Raises the program's exception on CPU.
    """
    HIDDEN_BY[backend.kind] = backend.hidden_by
    torch.set_num_threads(1)  # the threads of the process that forked this one do not exist here
    started = time.perf_counter_ns()
    try:
        on_phase("cpu")
        expected = scenario.run("cpu")
        on_phase("device")
        before = backend.live_memory()
        result, compared = _compared(scenario, backend, expected, backend.device)
        if not result.mismatches and not scenario.compiles and _has_grown(before, backend):
            leaked = _leaked(scenario, backend)
            result.mismatches += [leaked] if leaked else []
        for second in devices(scenario, backend)[1:] if not result.mismatches and not result.skipped else ():
            with contextlib.suppress(NotOffered):
                found, _ = _compared(scenario, backend, expected, second)
                result.mismatches += _where(f"on {second}", found)
        if runs_in_thread(scenario) and not result.mismatches and not result.skipped:
            result.mismatches += _where("in another thread", _in_a_thread(scenario, backend, expected, compared))
    except NotOffered as e:
        return CaseResult(skipped=f"not offered: {e}")
    result.raw_ns = time.perf_counter_ns() - started
    return result


def _has_grown(before: tuple[int, int], backend: Capabilities) -> bool:
    """Return whether more device memory is allocated than before, even after Python's garbage collector ran."""
    if backend.live_memory() <= before:
        return False
    gc.collect()
    return backend.live_memory() > before


def _leaked(scenario: Scenario, backend: Capabilities) -> Mismatch | None:
    """Run a scenario some more times. Return the leak of the last run if every run keeps memory."""
    leaked: Mismatch | None = None
    for _ in range(MORE_RUNS_BY_TORCH if backend.bare else MORE_RUNS):
        before = backend.live_memory()
        with contextlib.suppress(Exception):  # an error that the first run did not raise is no leak
            scenario.run(backend.device)
        backend.synchronize()
        if not _has_grown(before, backend):
            return None
        leaked = device_memory.leak(before, backend.live_memory())
    return leaked


def _where(place: str, found: CaseResult) -> list[Mismatch]:
    return [replace(m, subject=f"{m.subject} {place}".strip()) for m in found.mismatches]


def _in_a_thread(scenario: Scenario, backend: Capabilities, expected: Results, before: Sequence[str]) -> CaseResult:
    """Run a scenario in a new thread, and compare its results. It has to offer what it offered before."""
    with ThreadPoolExecutor(1) as threads:
        try:
            result, compared = threads.submit(_compared, scenario, backend, expected, backend.device).result()
        except NotOffered as e:
            return CaseResult([_lost("", e)])
    lost = sorted(set(before) - set(compared)) if not result.mismatches else ()
    result.mismatches += [_lost(name, NotOffered("this result, which was offered before")) for name in lost]
    return result


def _lost(name: str, e: NotOffered) -> Mismatch:
    found = {"kind": Fact.ERRORS.value, "device": facts.error(e), "cpu": None}
    return Mismatch(Check.ERROR_PARITY, name, found)


def devices(scenario: Scenario, backend: Capabilities) -> list[str]:
    """Return the devices on which a scenario runs: the backend's, and the second unless it is slow or compiles."""
    if scenario.slow or scenario.compiles or _SECOND.lacks(backend):
        return [backend.device]
    return [backend.device, str(_SECOND.device(torch.device(backend.device)))]


def runs_in_thread(scenario: Scenario) -> bool:
    """Return whether a scenario runs again in another thread: unless it is slow or compiles."""
    return not (scenario.slow or scenario.compiles)


def _compared(
    scenario: Scenario, backend: Capabilities, expected: Results, device: str
) -> tuple[CaseResult, Sequence[str]]:
    """Run a scenario on a device, and compare its results. Return the judgement, and the names of compared results.

    Raises NotOffered.
    """
    actual, raised = _on_device(scenario, backend, device)
    result = CaseResult([_damage(line) for line in backend.verify_memory()])
    if raised:
        result.mismatches.append(raised)
        return result, ()
    lacking = {name: found for side in (expected, actual) for name, found in side.items() if _lacks(found)}
    left = [name for name in expected if name not in lacking and name in actual]
    result.mismatches += [m for name in left if (m := _difference(scenario, name, expected, actual))]
    result.left_out = _left_out(lacking)
    parts = {one: [name for name in expected if name.startswith(one)] for one in lacking}
    cpu, ours = ({name for name in side if not _is_part(name, parts)} for side in (expected, actual))
    if cpu != ours:
        found = {"kind": Fact.COUNT.value, "device": len(ours), "cpu": len(cpu)}
        result.mismatches.append(Mismatch(Check.SHAPE, "", found))
        return result, left
    if not left:
        result.skipped = result.left_out
    return result, left


def _on_device(scenario: Scenario, backend: Capabilities, device: str) -> tuple[Results, Mismatch | None]:
    """Return the results on a device, or the finding that it raised. Raises NotOffered."""
    try:
        actual = scenario.run(device)
        backend.synchronize()
    except NotImplementedError as e:
        raise NotOffered(first_line(e)) from e
    except NotOffered:
        raise
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as e:  # noqa: BLE001  # torch's CheckpointException is no Exception
        found = {"kind": Fact.ERRORS.value, "device": facts.error(e), "cpu": None}
        return {}, Mismatch(Check.ERROR_PARITY, "", found)
    return actual, None


def operators(scenario: Scenario, device: str) -> list[str]:
    """Run a scenario on one side. Return the operators that ran, in order of their first starts."""

    def run() -> None:
        with contextlib.suppress(Exception):  # the finding is known; list the operators until then
            scenario.run(device)

    return kernels.names(run)


def _lacks(found: torch.Tensor | NotOffered | Broken) -> bool:
    return isinstance(found, NotOffered)


def _is_part(name: str, parts: dict[str, list[str]]) -> bool:
    """Return whether a result is not offered, itself or as a part of the program.

    ``parts``: for each name that is not offered, CPU's results whose names begin with it. A name without such results
    stands for all results.
    """
    return any(name.startswith(one) or not of_cpu for one, of_cpu in parts.items())


def _left_out(lacking: Results) -> str:
    """Return the results that were not compared, with reasons; "" if all were."""
    if not lacking:
        return ""
    reasons = list(dict.fromkeys(f"{name} ({why})" for name, why in lacking.items()))
    more = f", and {len(reasons) - _LEFT_OUT} more" if len(reasons) > _LEFT_OUT else ""
    return f"not offered: {', '.join(reasons[:_LEFT_OUT])}{more}"


def _damage(line: str) -> Mismatch:
    return Mismatch(Check.REDZONE, "", {"kind": Fact.DAMAGE.value, "line": line})


def _difference(scenario: Scenario, name: str, expected: Results, actual: Results) -> Mismatch | None:
    """Return the difference of one result. Integers and bools must be equal, floats close unless all must be equal."""
    want, got = expected[name], actual[name]
    assert isinstance(want, torch.Tensor)
    if isinstance(got, Broken):
        error = dict(zip(("type", "message"), got.error, strict=True)) if got.error else None
        told = {"kind": Fact.PROGRAM.value, "lines": list(got.lines), "at": got.at, "error": error}
        return Mismatch(Check.VALUE, name, told)
    assert isinstance(got, torch.Tensor)  # results that are not offered have been left out
    if found := compare.metadata(want, got, name, strided=can_fetch()):
        return found
    if scenario.exact:
        return compare.exact(want, host_copy(got), name)
    closeness = Closeness(ulps=CLOSENESS_ULPS, accumulates=True, terms=want.numel())
    return compare.close(want, host_copy(got), None, closeness, name)
