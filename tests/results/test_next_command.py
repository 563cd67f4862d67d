"""``conformance next``: a run, a backend, models and files, and errors of one line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from conformance.calls import file as calls
from conformance.calls.recording import Recorder
from conformance.cli import commands
from conformance.models import file
from conformance.results import store, summary
from conformance.vocabulary import Status
from tests import forked_runs
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
FAILING = observed("mm", "bfloat16-contiguous", Status.FAIL)
PASSING = observed("mm", "float32-contiguous")
LACKING = replace(observed("convolution.out", status=Status.UNSUPPORTED), route="unsupported")


def keep(results: Path, routes: dict[str, str] | None = None) -> None:
    """Store a run of three cells."""
    with store.Writer(results / LANE, manifest()) as writer:
        for cell in (FAILING, PASSING, LACKING):
            writer.append(cell)
        facts = summary.RunFacts(LANE, 3, 1.0, 1.0, 0.1, "sha256:1", "2.8.0", "g++ 12.2", "abc")
        found = summary.summarize(facts, (FAILING, PASSING, LACKING), ())
        writer.finish(found if routes is None else {**found, "routes": routes})


def run(results: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ("next", "--results", str(results), *arguments))


def records(results: Path, *arguments: str) -> list[dict[str, Any]]:
    shown = run(results, "--json", *arguments)
    assert shown.exit_code == 0, shown.output
    found: list[dict[str, Any]] = json.loads(shown.output)["steps"]
    return found


def test_a_failing_kernel_of_many_models_comes_first(tmp_path: Path) -> None:
    keep(tmp_path, dict.fromkeys(file.overloads(), "native"))
    shown = run(tmp_path)
    assert shown.exit_code == 0
    first = next(line for line in shown.output.splitlines() if line.startswith("  1."))
    assert first.split()[1:3] == ["fix", "mm"]
    assert "llama 775, qwen2 629" in first
    assert "bert" not in first  # its products are float32, and the cell is bfloat16


def test_an_operator_without_a_kernel_is_ranked_by_the_calls_that_reach_it(tmp_path: Path) -> None:
    routes = dict.fromkeys(file.overloads(), "composite") | {"convolution_overrideable": "unsupported"}
    keep(tmp_path, routes)
    found = {step["what"]: step for step in records(tmp_path)}
    assert found["convolution_overrideable"]["models"] == {"resnet": 106, "unet": 130, "vit": 2, "whisper": 4}
    assert (found["convolution"]["calls"], found["convolution"]["cells"]) == (0, 1)


def test_a_model_restricts_the_steps_to_those_that_it_needs(tmp_path: Path) -> None:
    keep(tmp_path, dict.fromkeys(file.overloads(), "native"))
    assert [step["what"] for step in records(tmp_path, "--model", "llama")] == ["mm"]
    assert records(tmp_path, "--model", "resnet,unet") == []


def test_a_run_without_routes_says_that_they_are_missing(tmp_path: Path) -> None:
    keep(tmp_path)
    assert "has no routes of the overloads that models call; --backend takes those" in run(tmp_path).output


def of_no_backend(results: Path, *arguments: str) -> str:
    """Return the output for a device without kernels, from a new process: other tests may load kernels in this one."""
    options = ("--backend", "torch:privateuseone", "--results", str(results))
    return python(results, "-m", "conformance.cli", "next", *arguments, *options)


def test_a_run_and_a_backend_take_the_routes_of_the_backend(tmp_path: Path) -> None:
    keep(tmp_path)
    steps = json.loads(of_no_backend(tmp_path, LANE, "--json"))["steps"]
    assert {("fix", "mm"), ("implement", "empty")} <= {(step["action"], step["what"]) for step in steps}


def test_without_a_run_the_routes_of_the_backend_are_ranked(tmp_path: Path) -> None:
    shown = of_no_backend(tmp_path, "--most", "2")
    assert "no run: cells and failing kernels are unknown" in shown
    assert "  1. implement empty" in shown
    assert "more; --most" in shown


def test_a_program_s_own_calls_take_the_place_of_the_models(tmp_path: Path) -> None:
    keep(tmp_path, dict.fromkeys(file.overloads(), "native"))
    x = torch.ones(2, 2, dtype=torch.bfloat16)
    with Recorder(torch.device("cpu")) as recorder:
        for _ in range(3):
            x.mm(x)
    path = tmp_path / "own.safetensors"
    calls.save(path, recorder.calls, facts={"counts": recorder.counts, "made": recorder.made})
    assert [(s["what"], s["models"]) for s in records(tmp_path, "--recorded", str(path))] == [("mm", {"own": 3})]
    both = records(tmp_path, "--recorded", str(path), "--model", "llama")
    assert [(s["what"], s["models"]) for s in both] == [("mm", {"llama": 775, "own": 3})]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--model", "lama"), "--model: unknown model 'lama'; near: llama"),
        (("--model", ""), "--model: expected at least one model"),
        (("--by", "byte"), "--by: unknown order 'byte'; near: bytes"),
        (("--recorded", "missing.safetensors"), "not a file of recorded calls"),
        (("--backend", "nix"), "unknown backend 'nix'"),
        (("nothing",), "nothing"),
    ],
)
def test_what_does_not_exist_is_an_error_of_one_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    keep(tmp_path, {})
    shown = run(tmp_path, *arguments)
    assert shown.exit_code == 2
    assert told in shown.output
    assert len(shown.output.splitlines()) == 1


STEP = """
import torch, torch.nn.functional as F
def step():
    F.group_norm(torch.conv2d(x, w, padding=1), 2).square().mean().backward()
"""
ARGUMENTS = """
x, w = torch.ones(2, 3, 8, 8, device="npu"), torch.ones(4, 3, 3, 3, device="npu").requires_grad_()
"""
# torch's gradient thread may abort the interpreter at its end, so the program exits without waiting for the thread.
MEASURED = """
import os, refnpu
from conformance import backends
from conformance.perf import work
{arguments}
step()
w.grad = None
print(work.copies(step, backends.find("refnpu"))[0], flush=True)
os._exit(0)
"""


def test_the_bytes_of_fallbacks_are_those_that_a_backend_s_fallback_copies(tmp_path: Path) -> None:
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    program, recorded = tmp_path / "program.py", tmp_path / "calls.safetensors"
    program.write_text(STEP + ARGUMENTS + "step()\n")
    command, backend = ("-m", "conformance.cli"), ("--backend", "refnpu")
    python(tmp_path, *command, "record", *backend, "-o", str(recorded), "--", str(program))
    told = python(tmp_path, *command, "next", *backend, "--json", "--recorded", str(recorded))
    program.write_text(STEP + MEASURED.format(arguments=ARGUMENTS))
    copied = sum(step["bytes"] for step in json.loads(told)["steps"])
    assert copied == int(python(tmp_path, str(program))) > 0


def python(where: Path, *arguments: str) -> str:
    """Run the interpreter in a directory, and return its output."""
    done = forked_runs.run((sys.executable, *arguments), where, PYTHONPATH=str(forked_runs.ROOT))
    assert done.returncode == 0, done.stderr
    return done.stdout
