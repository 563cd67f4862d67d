"""Compiled models, called with inputs that they were not compiled for. Compiles twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conformance import backends
from conformance.aoti import builtin, ends, session
from conformance.aoti.grid import grid
from conformance.aoti.kernels import Conclusion
from conformance.aoti.model import SWITCH, Advice, Api, Axis, End, Finding
from conformance.aoti.session import Compiled, Job
from conformance.aoti.triage import TriageJob, triage

STATIC = builtin.MODELS[0]
# Inductor lowers relu as abs; eager computes relu.
WRONG = """
from torch._inductor import lowering
import torch
from conformance.aoti.builtin import static as model

aten = torch.ops.aten
lowering.lowerings[aten.relu.default] = lambda x: lowering.lowerings[aten.abs.default](x)
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return Job(STATIC, backends.find("torch:cpu"), tmp_path_factory.mktemp("aoti"), timeout=600.0)


@pytest.fixture(scope="module")
def compiled(job: Job) -> Compiled:
    return session.compile_model(job, Api.CURRENT)


CALLS = (
    (Axis.NOTHING, "the example inputs"), (Axis.STRIDE, "transposed"), (Axis.SIZES, "size(0) = 8"),
    (Axis.SIZES, "size(0) = 0"), (Axis.ALIGNMENT, "1 element"),
)  # fmt: skip


@pytest.fixture(scope="module")
def found(job: Job, compiled: Compiled) -> dict[str, Finding]:
    """Return the findings about the calls in CALLS, by the change. Only ``mask`` or all inputs are changed."""
    every = [c for c in grid(compiled.inputs) if c.subject in ("", "mask")]
    calls = [c for c in every if any(c.axis is axis and c.what.startswith(what) for axis, what in CALLS)]
    return {f.what.partition(",")[0]: f for f in ends.findings(session.calls(job, compiled, calls))}


def test_inputs_are_described_as_they_were_compiled(compiled: Compiled) -> None:
    assert [(i.name, i.given.size, i.given.dtype) for i in compiled.inputs] == [
        ("x", (4, 16), "float32"), ("mask", (4, 8), "bool"),
    ]  # fmt: skip


def test_the_example_inputs_are_right(found: dict[str, Finding]) -> None:
    assert found["the example inputs"].advice is Advice.NONE
    assert found["the example inputs"].unset is found["the example inputs"].set is End.RIGHT


def test_other_strides_are_silent_garbage_unless_the_switch_is_set(found: dict[str, Finding]) -> None:
    finding = found["transposed"]
    assert (finding.unset, finding.set, finding.advice) == (End.GARBAGE, End.CLEAR_ERROR, Advice.SET_SWITCH)


def test_a_larger_batch_is_silent_garbage_unless_the_switch_is_set(found: dict[str, Finding]) -> None:
    finding = found["size(0) = 8"]
    assert (finding.unset, finding.set, finding.advice) == (End.GARBAGE, End.CLEAR_ERROR, Advice.SET_SWITCH)
    assert finding.detail == "output 0: shape [4, 4], eager has [8, 4]"


def test_a_process_that_dies_is_a_crash_and_the_next_call_goes_on(found: dict[str, Finding]) -> None:
    assert (found["size(0) = 0"].unset, found["size(0) = 0"].set) == (End.CRASH, End.CLEAR_ERROR)
    assert "SIGSEGV" in found["size(0) = 0"].detail
    assert len(found) == len(CALLS)


def test_an_address_that_is_not_aligned_is_right(found: dict[str, Finding]) -> None:
    assert (found["1 element"].unset, found["1 element"].set) == (End.RIGHT, End.RIGHT)


def test_a_call_that_takes_too_long_is_stopped_in_a_new_interpreter(job: Job, compiled: Compiled) -> None:
    seen = session.observe(replace(job, timeout=0.0), compiled, grid(compiled.inputs)[0], checked=True)
    assert (seen.phase, seen.died) == ("prepare", "timeout")


def test_a_new_interpreter_sees_what_a_forked_process_sees(job: Job, compiled: Compiled) -> None:
    call = grid(compiled.inputs)[0]
    seen = session.observe(job, compiled, call, checked=True)
    assert ends.ended(call, True, Api.CURRENT, seen).end is End.RIGHT, seen


def test_the_switch_of_this_process_does_not_reach_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    assert SWITCH not in session.environment_of(checked=False)
    assert session.environment_of(checked=True)[SWITCH] == "1"


def test_a_model_that_cannot_be_found_is_one_message(job: Job) -> None:
    with pytest.raises(session.CompileError, match="no module"):
        session.compile_model(replace(job, model="no_such_module:model"), Api.CURRENT)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("wrong") / "wrong_model.py"
    file.write_text(WRONG)
    return file


def test_triage_names_the_first_wrong_kernel_with_its_inputs(job: Job, wrong: Path, tmp_path: Path) -> None:
    result = triage(TriageJob(str(wrong), job.backend, tmp_path))
    assert result.conclusion is Conclusion.KERNEL
    assert result.wrong is not None
    assert "relu" in result.wrong.launch.kernel
    assert (result.wrong.node, "aten.relu.default" in result.wrong.ops) == ("where", True)
    mask = next(v for v in result.inputs if v.dtype == "bool")
    assert torch.load(mask.file, weights_only=True).shape == mask.size == (4, 8)


def test_triage_of_a_right_model_finds_nothing_and_refuses_wrong_inputs(
    job: Job, compiled: Compiled, tmp_path: Path
) -> None:
    right = TriageJob(STATIC, job.backend, tmp_path / "right", package=Path(compiled.path))
    result = triage(right)
    assert (result.conclusion, result.given) == (Conclusion.NOTHING, "its outputs are those of eager")
    assert result.compared > 0
    torch.save([torch.ones(8, 16), torch.ones(8, 8).bool()], tmp_path / "inputs.pt")
    refused = triage(replace(right, inputs=tmp_path / "inputs.pt", directory=tmp_path / "refused"))
    assert refused.conclusion is Conclusion.REFUSED
    assert "input_handles[0]: unmatched dim value at 0" in refused.detail
    assert "input_handles[0]" in refused.given
