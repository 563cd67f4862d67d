"""The scenarios: each passes on a correct device and fails on a wrong one."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.scenarios import runner

SMALL = ("mask", "masked_fill", "odd_bools", "threads")


@pytest.mark.parametrize("name", SMALL)
def test_the_cpu_under_its_own_name_equals_itself(name: str) -> None:
    result = runner.run(name, backends.find("torch:cpu"), 60)
    assert result.failure == ""
    assert result.compared
    assert result.text().startswith(f"{name}: equal to CPU: ")


def test_a_scenario_does_not_wait_for_threads_that_its_parent_had() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        torch.rand(1000, 1000).softmax(-1)  # large enough for all of them
        assert runner.run("mask", backends.find("torch:cpu"), 60).failure == ""
    finally:
        torch.set_num_threads(before)


def test_every_module_beside_the_runner_is_a_scenario() -> None:
    assert runner.names() == ["mask", "masked_fill", "odd_bools", "qwen2", "threads"]


def test_an_unknown_scenario_is_answered_with_near_ones() -> None:
    with pytest.raises(LookupError, match="near: masked_fill"):
        runner.lacking("masked_fil")


def test_a_scenario_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert runner.lacking("qwen2") == "transformers"
    assert runner.lacking("mask") == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: {"x": torch.ones(3, dtype=torch.int64)}, "dtype is int64"),
        (lambda: {"x": torch.ones(4)}, "shape is"),
        (lambda: {"x": torch.tensor([1.0, 1.0, 1.5])}, "1 of 3 elements differ"),
        (os.abort, "the process died: SIGABRT"),
        (lambda: os._exit(3), "the process died: exit code 3"),
        (lambda: 1 / 0, "the device raised ZeroDivisionError"),
    ],
)
def test_what_differs_is_named(monkeypatch: pytest.MonkeyPatch, wrong: Any, said: str) -> None:
    def run(device: str) -> Any:
        return {"x": torch.ones(3)} if device == "cpu" else wrong()

    monkeypatch.setattr(runner, "_module", lambda name: SimpleNamespace(run=run))
    backend = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")
    assert said in runner.run("hand", backend, 60).failure


def scenario(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", "scenario", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_only_the_mask_scenario_finds_a_copy_that_ignores_strides() -> None:
    pytest.importorskip("refnpu")
    found = scenario(*SMALL, REFNPU_FAULT="copy_ignores_strides", REFNPU_ALLOCATOR="malloc")
    assert found.returncode == 1
    assert "mask: FAILED" in found.stdout
    assert "masked_fill: equal to CPU" in found.stdout


def test_the_three_lines_find_a_mask_taken_for_nothing() -> None:
    pytest.importorskip("refnpu")
    found = scenario("masked_fill", REFNPU_FAULT="crash_in_kernel", REFNPU_ALLOCATOR="malloc")
    assert found.returncode == 1
    assert "masked_fill: FAILED: the process died: SIGSEGV" in found.stdout


def test_a_copy_that_ignores_strides_changes_a_model_s_tokens() -> None:
    pytest.importorskip("refnpu")
    pytest.importorskip("transformers")
    assert scenario("qwen2", REFNPU_ALLOCATOR="malloc").stdout.startswith("qwen2: equal to CPU: masked [2, 18]")
    found = scenario("qwen2", REFNPU_FAULT="copy_ignores_strides", REFNPU_ALLOCATOR="malloc")
    assert found.returncode == 1
    assert "qwen2: FAILED" in found.stdout
