"""The scenarios: each passes on a correct device and fails on a wrong one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.explain import repro
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.scenarios import catalogue, decoder
from conformance.scenarios.model import SCENARIOS, Results, Scenario
from conformance.vocabulary import RUN, CaseId, CellId, Status
from tests.scenarios.observed import first_failing, observe, planned, said
from tests.scenarios.planted import FOUND_BY, FOUND_WHERE_REFUSED


@pytest.mark.parametrize("name", catalogue.names())
def test_the_cpu_under_its_own_name_equals_itself(name: str) -> None:
    found = observe(planned("torch:cpu"), name)
    assert (found.status, found.compared, found.reason) == (Status.PASS, 1, ""), said(found)


@pytest.mark.parametrize("fault", FOUND_BY)
def test_a_fault_in_kept_state_is_found_by_a_scenario_that_is_clean_without_it(fault: str, refnpu: Any) -> None:
    plan = planned("refnpu")
    clean = observe(plan, FOUND_BY[fault])
    assert clean.status is Status.PASS, said(clean)
    refnpu.set_fault(fault)
    found = first_failing(plan, FOUND_BY[fault])
    assert found.status is Status.FAIL
    assert found.failures[0].mismatches


def test_a_fault_of_later_sessions_of_the_profiler_is_found_by_the_second_program_of_a_process(refnpu: Any) -> None:
    refnpu.set_fault("profiler_drops_first_of_later_sessions")
    runner = Runner(CellRunner(planned("refnpu")), timeout=600)
    try:
        found = [runner.observe(CellId.of_scenario("profiling:kernels_of_many_ops")) for _ in range(2)]
    finally:
        runner.close()
    assert [one.status for one in found] == [Status.PASS, Status.FAIL]


@pytest.mark.parametrize("fault", FOUND_WHERE_REFUSED)
def test_sharing_that_is_refused_is_no_failure_and_sharing_nothing_is_one(fault: str, refnpu: Any) -> None:
    plan = planned("refnpu")
    clean = observe(plan, FOUND_WHERE_REFUSED[fault])
    assert clean.status is Status.UNSUPPORTED, said(clean)
    assert "the npu has no memory that processes share" in clean.reason
    refnpu.set_fault(fault)
    found = observe(plan, FOUND_WHERE_REFUSED[fault])
    assert found.status is Status.FAIL
    assert found.failures[0].mismatches


@pytest.mark.parametrize(
    "fault",
    [
        "get_state_aliases",
        "rng_state_of_current_device",
        "resize_forgets_offset",
        "copy_ignores_strides",
        "gathered_in_reverse",
    ],
)
def test_the_script_of_a_scenario_needs_no_suite(fault: str, refnpu: Any, tmp_path: Path) -> None:
    plan = planned("refnpu")
    case = str(CaseId(CellId.of_scenario(FOUND_BY[fault]), RUN))
    script = tmp_path / "script.py"
    script.write_text(repro.script_of_case(plan, case))
    assert "conformance" not in script.read_text()
    asleep, awake = (run_script(script, fault=name) for name in ("", fault))
    assert (asleep.returncode, asleep.stdout) == (0, "the device does as CPU does\n"), asleep.stderr
    assert awake.returncode == 1
    assert awake.stdout.startswith("DIFFERS: ")


@pytest.mark.parametrize("fault", ["", "conj_bit_ignored"])
def test_repro_of_a_program_leaves_out_what_the_gate_finds_broken(fault: str, refnpu: Any, tmp_path: Path) -> None:
    case = str(CaseId(CellId.of_scenario("serialization:pickled"), RUN))
    script = tmp_path / "script.py"
    command = ["-m", "conformance.cli", "repro", case, "--backend", "refnpu", "-o", str(script)]
    environment = {**os.environ, "REFNPU_FAULT": fault}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ("bring-up gate: conjugate" in done.stderr) == bool(fault)
    assert ("BROKEN_PRIMITIVES['npu'] = frozenset({'conjugate'" in script.read_text()) == bool(fault)
    ran = run_script(script, fault)
    assert (ran.returncode, ran.stdout) == (0, "the device does as CPU does\n"), ran.stderr


def run_script(script: Path, fault: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REFNPU_FAULT": fault}
    command = [sys.executable, str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=script.parent)


def test_the_likeliest_tokens_of_the_decoder_lie_far_apart() -> None:
    for name, logits in decoder.generation("cpu").items():
        if name.endswith("logits"):
            assert isinstance(logits, torch.Tensor)
            best, second = logits.topk(2).values.unbind(-1)
            assert float((best - second).min()) > 0.01


def _signed(value: Any) -> Any:
    """Return an integer with its 64 bits read as signed; any other value unchanged."""
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else value


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ({"item": lambda tensor: 0}, "handles:items"),
        ({"tolist": lambda tensor: [0] * len(tensor)}, "handles:items"),
        ({"item": lambda tensor: _signed(tensor.tolist())}, "handles:items"),
        ({"untyped_storage": None}, "handles:tensors_swapped"),
    ],
)
def test_the_handles_of_tensors_are_seen_to_fail(
    monkeypatch: pytest.MonkeyPatch, broken: dict[str, Any], name: str
) -> None:
    """No fault of refnpu breaks the handles, so this test makes the broken device."""
    scenario = SCENARIOS[name]

    def run(device: str) -> Results:
        if device != "cpu":
            for method, wrong in broken.items():
                if wrong is not None:
                    monkeypatch.setattr(torch.Tensor, method, wrong)
                else:
                    monkeypatch.setattr(torch.utils, "swap_tensors", lambda one, two: None)
        return scenario.run("cpu")

    monkeypatch.setitem(SCENARIOS, "masks:made", Scenario("masks:made", run, exact=True))
    plan = planned("torch:cpu")
    plan.backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
    assert observe(plan, "masks:made").status is Status.FAIL
