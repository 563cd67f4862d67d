"""Proof that the suite can fail: it finds each planted fault of the reference NPU, in a cell of the op it breaks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

from refnpu import testing  # only if it is installed

from benchmarks import huge_faults, perf_faults
from conformance import backends, contexts, ops
from conformance.explain import describe
from conformance.layouts import CONTEXTS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import CaseFailure, Death, DeathFinding, Observation, Repeats, Repetition, Setting
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Check, Status
from tests import planted
from tests.planted import FOUND_ELSEWHERE, FOUND_IN, HUGE, PLANTED, PLANTED_TO_MEASURE, SLOW


def test_no_fault_is_without_a_finder() -> None:
    measured = {name for name, fault in PLANTED.items() if fault.kind in PLANTED_TO_MEASURE}
    named = FOUND_IN.keys() | FOUND_ELSEWHERE.keys()
    assert named <= testing.faults().keys()
    assert testing.faults().keys() <= named | measured


def test_a_finder_stands_in_the_module_of_the_class_of_its_fault() -> None:
    stands_in = {
        fault: module.__name__.split(".")[2]  # tests.planted.CLASS
        for module in planted.MODULES
        for fault in module.FOUND_IN.keys() | module.FOUND_ELSEWHERE.keys()
    }
    assert stands_in == {fault: PLANTED[fault].kind for fault in stands_in}


def test_a_fault_in_two_modules_is_refused() -> None:
    assert planted.merged([{"tail_lost": "a cell"}, {"head_lost": "a cell"}]).keys() == {"tail_lost", "head_lost"}
    with pytest.raises(ValueError, match="more than one finder of tail_lost"):
        planted.merged([{"tail_lost": "a cell"}, {"head_lost": "a cell", "tail_lost": "a lane"}])


def test_the_benchmark_of_speed_wakes_each_fault_of_that_class() -> None:
    assert perf_faults.FAULTS.keys() == SLOW


def test_the_benchmark_of_huge_tensors_wakes_each_fault_of_that_class() -> None:
    assert huge_faults.FAULTS.keys() == HUGE


@pytest.fixture(scope="module")
def work() -> CellRunner:
    return CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))


@pytest.fixture
def awake() -> Iterator[None]:
    yield
    testing.set_fault(None)


def observe(work: CellRunner, overload: str, dtype: str, layout: str) -> Observation:
    cell = CellId(ops.facts(overload).family, overload, dtype, layout)
    assert work.case_ids(cell), f"the matrix has no cell {cell}"
    runner = Runner(work, timeout=600)
    try:
        return runner.observe(cell)
    finally:
        runner.close()


def first_failing(work: CellRunner, overload: str, dtype: str, layout: str) -> Observation:
    """Return the first failing observation, or the last: up to 5 with delays, since a busy host may be even later."""
    most = 5 if layout in CONTEXTS and contexts.of(layout).delays else 1
    found = [observe(work, overload, dtype, layout)]
    while len(found) < most and not found[-1].status.is_failure:
        found.append(observe(work, overload, dtype, layout))
    return found[-1]


@pytest.mark.parametrize("fault", FOUND_IN)
@pytest.mark.usefixtures("awake")
def test_a_planted_fault_is_found_in_a_cell_that_is_clean_without_it(work: CellRunner, fault: str) -> None:
    *cell, check = FOUND_IN[fault]
    clean = observe(work, *cell)
    assert clean.status is Status.PASS, clean
    testing.set_fault(fault)
    found = first_failing(work, *cell)
    assert found.status is (Status.FAIL if check else Status.CRASH), found
    assert check in {f.check for f in found.failures}, [describe.findings(f) for f in found.failures]


@pytest.mark.parametrize(
    ("fault", "overload", "check"),
    [
        ("reduction_skips_tail", "mse_loss", Check.VALUE),
        ("tail_element_skipped", "smooth_l1_loss", Check.UNINITIALIZED),
    ],
)
@pytest.mark.usefixtures("awake")
def test_a_fault_of_an_op_is_found_in_the_decomposition_of_one_whose_own_kernel_is_right(
    work: CellRunner, fault: str, overload: str, check: Check
) -> None:
    assert observe(work, overload, "float32", "decomposed").status is Status.PASS
    testing.set_fault(fault)
    assert observe(work, overload, "float32", "contiguous").status is Status.PASS
    found = observe(work, overload, "float32", "decomposed")
    assert {m.check for f in found.failures for m in f.mismatches} == {check}


@pytest.mark.parametrize(
    ("fault", "overload", "dtype"),
    [("autocast_leaves_lists", "einsum", "bfloat16"), ("autocast_forgets_baddbmm", "baddbmm", "float32")],
)
@pytest.mark.usefixtures("awake")
def test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out(
    work: CellRunner, fault: str, overload: str, dtype: str
) -> None:
    assert observe(work, overload, dtype, "autocast").status is Status.PASS
    testing.set_fault(fault)
    found = observe(work, overload, dtype, "autocast")
    assert "dtype" in {f.check for f in found.failures}, [describe.findings(f) for f in found.failures]


def test_the_smoke_tier_has_the_cells_that_find_the_faults_of_contexts() -> None:
    smoke = Plan(backends.find("refnpu"), Selection(tier=TIERS["smoke"]), seed=20)
    slow_to_load = {
        "backward", "gradgrad", "gradcheck", "jacrev", "fake", "forward_ad", "compiled", "decomposed", "inductor",
        "overwritten",
    }  # fmt: skip
    wanted = [cell for cell in FOUND_IN.values() if cell[2] in CONTEXTS.keys() - slow_to_load]
    found = {(c.overload, c.dtype, c.layout) for overload, *_ in wanted for c in smoke.cells(overload)}
    assert len(wanted) > 15
    assert {cell[:3] for cell in wanted} <= found


@pytest.mark.usefixtures("awake")
def test_a_failing_case_lists_the_operators_that_ran_on_the_device(work: CellRunner) -> None:
    testing.set_fault("copy_ignores_strides")
    found = observe(work, *FOUND_IN["copy_ignores_strides"][:3])
    assert found.failures[0].calls == ("copy_", "_copy_from")
    assert not any(failure.calls for failure in found.failures[1:])


@pytest.mark.usefixtures("awake")
@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        ("cat_on_default_stream", {"cat", "narrow", "slice", "as_strided"}),
        ("second_device_sums_on_default_stream", {"mean"}),
        ("thread_drops_first_launch", {"neg"}),
        ("failed_allocation_counted", {"neg"}),
    ],
)
def test_what_a_context_calls_besides_the_op_is_not_among_them(work: CellRunner, fault: str, calls: set[str]) -> None:
    testing.set_fault(fault)
    found = observe(work, *FOUND_IN[fault][:3])
    assert set(found.failures[0].calls) == calls


@pytest.mark.usefixtures("awake")
def test_a_kernel_that_never_ends_is_a_timeout(work: CellRunner) -> None:
    testing.set_fault("hang_in_kernel")
    runner = Runner(work, timeout=1)
    found = runner.observe(CellId("masking", "masked_fill_.Scalar", "float32", "contiguous"))
    runner.close()
    assert found.status is Status.TIMEOUT


FILL = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")


@pytest.mark.usefixtures("awake")
def test_a_death_in_a_kernel_is_steady(work: CellRunner) -> None:
    testing.set_fault("crash_in_kernel")
    found = died(work, [FILL])
    assert found
    assert (found.signal, found.phase) == ("SIGSEGV", "device")
    assert found.finding == DeathFinding("steady", (5, 5))


@pytest.mark.usefixtures("awake")
def test_a_death_in_some_processes_is_flaky(work: CellRunner) -> None:
    testing.set_fault("crash_in_some_processes")
    deaths = filter(None, (died(work, [FILL]) for _ in range(120)))  # each in its own process, of which 1 in 3 dies
    found = [death.finding for death in islice(deaths, 5)]
    assert len(found) == 5
    flaky = [finding for finding in found if finding and finding.kind == "flaky"]
    assert len(flaky) >= 3  # in 1 of 243 inquiries, all five processes die by chance
    assert all(finding.alone[0] < finding.alone[1] == 5 for finding in flaky)


@pytest.mark.usefixtures("awake")
def test_a_death_after_another_op_names_it(work: CellRunner) -> None:
    testing.set_fault("crash_after_sort")
    sort = CellId("sorting", "sort.values_stable", "float32", "contiguous")
    adds = [CellId("pointwise", "add.out", "float32", layout) for layout in ("contiguous", "step2", "expanded")]
    assert all(work.case_ids(cell) for cell in (*adds, sort))
    found = died(work, [*adds[:2], sort, *adds, FILL])
    assert found
    assert found.finding
    assert found.finding.after.startswith(f"{sort}#")
    assert (found.finding.kind, found.finding.alone, found.finding.confirmed) == ("ordered", (0, 5), (5, 5))


ZEROS = CellId("factory", "fill_.Scalar", "bfloat16", "zero_dim")
BOOLS = CellId("factory", "fill_.Scalar", "bool", "contiguous")
MISH = CellId("activation", "mish", "float32", "contiguous")


@pytest.mark.usefixtures("awake")
def test_a_difference_after_another_case_names_it_and_its_commands_reproduce(work: CellRunner, tmp_path: Path) -> None:
    testing.set_fault("fill_element_without_dtype")
    found = differs(work, [ZEROS, FILL, BOOLS])
    assert found.repetition
    (earlier,) = found.repetition.after
    assert earlier.startswith(f"{ZEROS}#")
    assert (found.repetition.kind, found.repetition.confirmed) == (Repeats.ORDERED, (5, 5))
    assert found.repetition.alone == (0, 5)
    reproduces(found, "fill_element_without_dtype", tmp_path)


@pytest.mark.usefixtures("awake")
def test_a_difference_in_some_calls_is_flaky_and_its_commands_reproduce(work: CellRunner, tmp_path: Path) -> None:
    testing.set_fault("mish_wrong_at_random")
    found = next(filter(None, (differing(work, [MISH]) for _ in range(40))))
    assert found.repetition
    assert found.repetition.kind is Repeats.FLAKY
    assert 0 < found.repetition.alone[0] < found.repetition.alone[1] == 20
    reproduces(found, "mish_wrong_at_random", tmp_path)


@pytest.mark.usefixtures("awake")
def test_a_difference_each_time_is_steady(work: CellRunner) -> None:
    testing.set_fault("cat_drops_last")
    found = differs(work, [CellId("concatenation", "cat.out", "float32", "contiguous")])
    assert found.repetition == Repetition(Repeats.STEADY, (5, 5))


def differs(work: CellRunner, cells: list[CellId]) -> CaseFailure:
    found = differing(work, cells)
    assert found
    return found


def differing(work: CellRunner, cells: list[CellId]) -> CaseFailure | None:
    """Run the cells one after the other in one child. Return the first failure of the last cell, or None."""
    runner = Runner(work, timeout=600, failures_s=10_000)  # no test depends on time
    try:
        return next(iter([runner.observe(cell) for cell in cells][-1].failures), None)
    finally:
        runner.close()


def reproduces(found: CaseFailure, fault: str, directory: Path) -> None:
    """Run both commands of a failure in new processes. Assert that they fail only while the fault is enabled."""
    setting, environment = found.setting, {**os.environ, "REFNPU_FAULT": fault, "REFNPU_ALLOCATOR": "malloc"}
    assert setting != Setting()
    said = describe.commands(found, "refnpu")
    script = directory / "script.py"
    words = [*shlex.split(said["script"])[1:], "-o", str(script)]
    assert subprocess.run([sys.executable, "-m", "conformance.cli", *words], cwd=directory, check=True)
    commands = ([*shlex.split(said["repeat"])[1:], "-p", "no:cacheprovider"], [str(script)])
    for module, command in zip((["-m", "pytest"], []), commands, strict=True):
        for awake in (True, False):
            environment["REFNPU_FAULT"] = fault if awake else ""
            words = [sys.executable, *module, *command]
            done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == int(awake), done.stdout + done.stderr


def died(work: CellRunner, cells: list[CellId]) -> Death | None:
    """Run the cells one after the other in one child. Return the first death, or None."""
    runner = Runner(work, timeout=600, inquiry_s=10_000)  # no test depends on time
    try:
        observed = map(runner.observe, cells)
        return next((o.failures[0].death for o in observed if o.status is Status.CRASH), None)
    finally:
        runner.close()


@pytest.mark.usefixtures("awake")
def test_memory_on_the_wrong_device_is_found_before_any_cell_runs(work: CellRunner) -> None:
    second = CellRunner(Plan(backends.find("refnpu:npu:1"), Selection(), seed=20))
    assert broken(second) == broken(work) == ""
    testing.set_fault("second_device_lands_on_first")
    assert "asked for on npu:1 lie on npu:0" in broken(second)
    assert "asked for on npu:1 lies on npu:0" in broken(work)


def broken(work: CellRunner) -> str:
    runner = Runner(work, timeout=600)
    try:
        return str(runner.gate() or "")
    finally:
        runner.close()
