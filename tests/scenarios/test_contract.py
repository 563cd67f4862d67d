"""The programs about PyTorch's contract with devices: each fails on a device that breaks its promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from conformance import backends
from conformance.cli import commands
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import Observation
from conformance.running.cell_runner import CellRunner
from conformance.running.child import Hang
from conformance.running.endings import End, reference_death
from conformance.running.runner import Runner
from conformance.scenarios import catalogue, training
from conformance.scenarios.model import SCENARIOS
from conformance.vocabulary import CellId, Status

CONTRACT = [name for name in catalogue.names() if catalogue.find(name).area]


def observe(backend: str, name: str) -> Observation:
    runner = Runner(CellRunner(Plan(backends.find(backend), Selection(tier=TIERS["full"]), seed=20)), 600)
    try:
        return runner.observe(CellId.of_scenario(name))
    finally:
        runner.close()


@pytest.mark.parametrize("name", CONTRACT)
def test_a_program_says_what_is_promised_in_a_sentence(name: str) -> None:
    promise = catalogue.find(name).promise
    assert promise.endswith(".")
    assert len(promise) > 30


def always(value: object) -> Callable[..., object]:
    return lambda *args, **kwargs: value


# program: the function of torch.npu that is broken, and its broken form
BROKEN: dict[str, tuple[str, Any]] = {
    "devices:counts_and_current_device": ("current_device", always(7)),
    "devices:statistics_add_up": ("reset_peak_memory_stats", always(None)),
    "devices:out_of_memory": ("memory_allocated", partial(next, iter(range(100)))),
    "training:checkpoints_with_dropout": ("get_rng_state", always(torch.zeros(0, dtype=torch.uint8))),
}


@pytest.mark.usefixtures("refnpu")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_device_module_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, wrong = BROKEN[name]
    assert observe("refnpu", name).status is Status.PASS
    monkeypatch.setattr(f"torch.npu.{attribute}", wrong)
    assert observe("refnpu", name).status is Status.FAIL


FOUND_BY = {
    "set_storage_of_number_as_row": "serialization:copied",
    "set_storage_empty_keeps_size": "serialization:pickled",
    "copy_ignores_strides": "serialization:saved_and_loaded",
    "layer_norm_saves_deviation": "training:layers",
    "gemm_drops_depth_tail": "exporting:exported",
}


@pytest.mark.parametrize("fault", FOUND_BY)
def test_a_planted_fault_is_found_by_a_program(fault: str, refnpu: Any) -> None:
    assert observe("refnpu", FOUND_BY[fault]).status is Status.PASS
    refnpu.set_fault(fault)
    assert observe("refnpu", FOUND_BY[fault]).status is Status.FAIL


@pytest.mark.usefixtures("refnpu")
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("training:scaled_gradients", "torch.amp.GradScaler.update"),
        ("serialization:state_of_a_module", "torch.nn.Module.load_state_dict"),
        ("loading:copies_that_do_not_block", "torch.Tensor.copy_"),
        ("distributed:checkpoints", "torch.distributed.checkpoint.load"),
        ("exporting:exported_through_a_file", "conformance.scenarios.exporting.load"),
        ("exporting:exported_on_cpu_and_moved", "torch.export.passes.move_to_device_pass"),
        ("profiling:calls_of_ops", "torch.profiler.profile.events"),
    ],
)
def test_a_step_that_does_nothing_on_the_device_is_found(
    name: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = catalogue.find(name)

    def run(device: str) -> Any:
        with monkeypatch.context() as patch:
            if device != "cpu":
                patch.setattr(broken, always(None))
            return found.run(device)

    assert observe("refnpu", name).status is Status.PASS
    monkeypatch.setitem(SCENARIOS, name, type(found)(name, run, found.exact, found.slow, found.area))
    assert observe("refnpu", name).status is Status.FAIL


@pytest.mark.forked  # process groups start threads
@pytest.mark.parametrize("call", ["all_gather", "gather"])
def test_a_collective_call_that_does_nothing_changes_its_result_alone(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = catalogue.find("distributed:collectives_of_one_process").run
    right = run("cpu")
    monkeypatch.setattr(f"torch.distributed.{call}", always(None))
    wrong = run("cpu")
    assert [name for name in right if not torch.equal(tensor(right[name]), tensor(wrong[name]))] == [call]


def tensor(result: object) -> torch.Tensor:
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.usefixtures("refnpu")
def test_kernels_that_take_no_time_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert observe("refnpu", "profiling:time_of_kernels").status is Status.PASS
    monkeypatch.setattr("torch.autograd.profiler_util.FunctionEvent.self_device_time_total", 0)
    assert observe("refnpu", "profiling:time_of_kernels").status is Status.FAIL


@pytest.mark.usefixtures("refnpu")
def test_a_checkpoint_for_which_the_device_lacks_a_function_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("torch.npu.current_stream")
    found = observe("refnpu", "distributed:checkpoints")
    assert (found.status, "current_stream" in found.reason) == (Status.UNSUPPORTED, True)


@pytest.mark.usefixtures("refnpu")
def test_an_exception_that_is_no_error_is_a_finding_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class CheckpointException(BaseException):
        """A stand-in for the exception of torch.distributed.checkpoint, which is no subclass of Exception either."""

    def run(device: str) -> Any:
        if device != "cpu":
            raise CheckpointException("a rank failed")
        return {"x": torch.ones(1)}

    name = "loading:loaders"
    monkeypatch.setitem(SCENARIOS, name, type(catalogue.find(name))(name, run, area="loading"))
    found = observe("refnpu", name)
    assert found.status is Status.FAIL
    assert "a rank failed" in str(found.failures[0].mismatches[0].facts)


def test_a_layer_that_is_refused_is_left_out_and_the_others_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> Any:
        raise NotImplementedError("no such layer")

    monkeypatch.setitem(training.RECURRENT, "other", refused)
    found = observe("torch:cpu", "training:recurrent_layers")
    assert (found.status, found.reason) == (Status.PASS, "not offered: other (no such layer)")


def test_a_program_that_does_not_return_on_cpu_is_not_what_the_backend_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CellId.of_scenario("loading:loaders")
    seen = Observation(cell, "", Status.UNSUPPORTED, 0, reason="not offered: streams")
    monkeypatch.setattr(Runner, "observe", lambda *_: seen)
    assert "| loading | `loading:loaders` | unsupported: not offered: streams |" in contract("loading").output
    seen = reference_death(cell, "", End(Hang(3.0, ""), str(cell), "cpu", 0, 0))
    ended = contract("loading")
    assert (
        "| not compared: the CPU reference of scenarios/loading.py::loaders did not return within 3 s |" in ended.output
    )
    assert ended.exit_code == 0


def contract(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["contract", "--backend", "torch:cpu", *arguments])


def test_the_command_prints_a_table_and_writes_the_ends_of_each_backend(tmp_path: Path) -> None:
    file = tmp_path / "ends.json"
    file.write_text('{"other": {}}')
    ended = contract("devices", "loading", "-o", str(file))
    assert ended.exit_code == 0, ended.output
    assert "| loading | `loading:loaders` | supported |" in ended.output
    assert "`training" not in ended.output
    ends = json.loads(file.read_text())
    assert ends.keys() == {"other", "torch:cpu"}
    program = ends["torch:cpu"]["devices:streams_and_events"]
    assert (program["end"], program["detail"]) == ("not asked", "it is about accelerators")
    kept = {"area": "devices", "promise": "", "end": "failing", "detail": "it was"}
    gone = kept | {"area": "of_before"}
    file.write_text(json.dumps({"torch:cpu": {"gone:program": gone, "devices:streams_and_events": kept}}))
    assert contract("loading", "-o", str(file)).exit_code == 0
    ends = json.loads(file.read_text())["torch:cpu"]
    assert ends["devices:streams_and_events"] == kept, "an area that did not run keeps its ends"
    assert "gone:program" not in ends
    assert [ended["area"] for ended in ends.values()] == ["devices"] + ["loading"] * (len(ends) - 1)


def test_ctrl_c_keeps_the_ends_of_the_programs_that_ran_and_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe_ = Runner.observe

    def interrupted(runner: Runner, cell: CellId) -> Observation:
        if "loaders" in str(cell):
            raise KeyboardInterrupt
        return observe_(runner, cell)

    monkeypatch.setattr(Runner, "observe", interrupted)
    ended = contract("loading", "-o", str(tmp_path / "ends.json"))
    assert (ended.exit_code, ended.output.splitlines()[-1]) == (2, "Error: interrupted")
    assert set(json.loads((tmp_path / "ends.json").read_text())["torch:cpu"]) == {
        name for name in CONTRACT if name.startswith("loading:") and name < "loading:loaders"
    }


@pytest.mark.parametrize("other", [[], {"a": []}, {"a": {"b": {}}}])
def test_a_file_of_other_content_is_a_mistake_before_a_program_runs(other: object, tmp_path: Path) -> None:
    (tmp_path / "ends.json").write_text(json.dumps(other))
    ended = contract("loading", "-o", str(tmp_path / "ends.json"))
    assert ended.exit_code == 2
    assert "expected a file that `conformance contract` wrote" in ended.output
    assert "supported" not in ended.output


def test_an_unknown_area_is_answered_with_near_ones() -> None:
    ended = contract("memry")
    assert ended.exit_code == 2
    assert ended.output == "Error: unknown area 'memry'; near: memory\n"


def test_a_failing_program_is_an_exit_code_and_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "loading:loaders"
    monkeypatch.setitem(SCENARIOS, name, type(catalogue.find(name))(name, _raises, area="loading"))
    ended = contract("loading")
    assert ended.exit_code == 1
    assert f"| loading | `{name}` | failing: " in ended.output


def _raises(device: str) -> Any:
    raise RuntimeError(f"no batches on {device}")


def test_the_docs_have_every_program_with_its_promise() -> None:
    of_backends: dict[str, dict[str, dict[str, str]]] = json.loads(
        (Path(__file__).parents[2] / "docs" / "contract.json").read_text(encoding="utf-8")
    )
    promises = {name: catalogue.find(name).promise for name in CONTRACT}
    for programs in of_backends.values():
        assert {name: program["promise"] for name, program in programs.items()}.items() <= promises.items()
    for backend in ("refnpu", "torch:cpu"):
        assert of_backends[backend].keys() == promises.keys()
