"""Models, files of inputs and devices that a user gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from conformance.aoti.spec import Model, SpecError, inputs_from, load
from conformance.cli import commands
from conformance.torch_versions import compilers

MODEL = """
import torch

def model():
    return torch.nn.Linear(4, 2), (torch.randn(3, 4),)

def nested():
    return torch.nn.Identity(), ({"a": torch.ones(2)}, [torch.zeros(3), 7]), None

def no_tuple():
    return torch.nn.Linear(4, 2)

def no_tensor():
    return torch.nn.Identity(), (3,)

def sparse():
    return torch.nn.Identity(), (torch.eye(3).to_sparse(),)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "some_model.py").write_text(MODEL)
    return tmp_path / "some_model.py"


def test_a_file_has_its_model_under_the_name_model(file: Path) -> None:
    found = load(str(file), "cpu")
    assert [tuple(t.shape) for t in found.tensors] == [(3, 4)]
    assert not found.module.training


def test_each_process_gets_the_same_weights(file: Path) -> None:
    one, other = (load(str(file), "cpu") for _ in range(2))
    assert torch.equal(one.module.weight, other.module.weight)
    assert torch.equal(one.tensors[0], other.tensors[0])


def test_tensors_in_containers_are_replaced_in_order(file: Path) -> None:
    found = load(f"{file}:nested", "cpu")
    ((first, (second, number)),) = [found.with_tensors([torch.ones(1), torch.ones(5)])]
    assert (first["a"].shape, second.shape, number) == ((1,), (5,), 7)


def test_one_tensor_less_or_more_is_one_argument_less_or_more() -> None:
    a, b = torch.zeros(1), torch.ones(1)
    model = Model(torch.nn.Identity(), (a, b))
    assert len(model.with_tensors([a])) == 1
    assert len(model.with_tensors([a, b, b])) == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nothing", "expected file.py, file.py:function or module:function"),
        ("missing.py", "no file"),
        ("no_such_module:model", "no module 'no_such_module'"),
        ("{file}:modell", "near: model"),
        ("{file}:no_tuple", "returns Linear; expected (module, example inputs"),
        ("{file}:no_tensor", "no tuple with a tensor"),
        ("{file}:sparse", "not strided"),
    ],
)
def test_what_is_no_model_gets_a_message(file: Path, spec: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        load(spec.format(file=file), "cpu")
    assert message in str(raised.value)


def test_a_file_of_inputs_has_as_many_tensors_as_the_model(file: Path, tmp_path: Path) -> None:
    model, inputs = load(str(file), "cpu"), tmp_path / "inputs.pt"
    torch.save([torch.ones(3, 4)], inputs)
    assert [tuple(t.shape) for t in inputs_from(inputs, model, "cpu")] == [(3, 4)]
    torch.save([torch.ones(3, 4)] * 2, inputs)
    with pytest.raises(SpecError, match="has 2 tensors; the model has 1 inputs"):
        inputs_from(inputs, model, "cpu")


def test_a_file_of_inputs_cannot_run_code(file: Path, tmp_path: Path) -> None:
    torch.save([torch.nn.Linear(1, 1)], tmp_path / "inputs.pt")
    with pytest.raises(SpecError, match="cannot be loaded as tensors"):
        inputs_from(tmp_path / "inputs.pt", load(str(file), "cpu"), "cpu")


@pytest.mark.forked
def test_a_device_that_inductor_does_not_know_is_said_to_be_unknown() -> None:
    assert "Inductor knows no device 'mydev', only " in compilers.inductor_lacks("mydev")
    assert compilers.inductor_lacks("cpu") == ""


def test_a_package_alone_is_not_enough_for_triage() -> None:
    result = CliRunner().invoke(commands, ["triage", "--aoti", "model.pt2"])
    assert result.exit_code == 2
    assert "cannot be compiled again" in result.output


def test_a_package_that_does_not_exist_gets_a_message() -> None:
    result = CliRunner().invoke(commands, ["triage", "--aoti", "no_package.pt2", "some_model.py"])
    assert (result.exit_code, result.output.strip()) == (2, "Error: no file no_package.pt2")


def test_the_output_of_a_compiler_that_an_error_names_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def model(:\n")
    shown = CliRunner().invoke(commands, ["aoti", str(wrong)])
    assert shown.exit_code == 2
    log = Path(shown.output.strip().rpartition("the output is in ")[2])
    assert log.is_file()


def test_without_such_an_error_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shown = CliRunner().invoke(commands, ["aoti", "no_such_module:model"])
    assert "no module 'no_such_module'" in shown.output
    assert list(tmp_path.iterdir()) == []
