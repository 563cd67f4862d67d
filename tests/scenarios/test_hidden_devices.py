"""Device modules that need a device, or report a device, where there is none."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from conformance.backends import Capabilities
from conformance.bare_device import BareDevice
from conformance.judging import programs
from conformance.scenarios import catalogue, hidden_devices, importing
from conformance.scenarios.hidden_devices import facts_without_a_device, programs_without_a_device
from conformance.scenarios.model import HIDDEN_BY, Broken, NotOffered

VARIABLES = {"CUDA_VISIBLE_DEVICES": ""}
WRONG = """
import torch

ones = torch.ones
torch.ones = lambda *size, **how: ones(*size, **({} if how == {"device": "cuda"} else how))
torch.use_deterministic_algorithms(True)

def is_available():
    return True

def device_count():
    raise RuntimeError("no driver")
"""
DIES = """
import os

def mem_get_info():
    os.abort()
"""


@functools.cache
def facts_of_cpu() -> dict[str, str]:
    return importing.facts_of("torch", {**hidden_devices.ON_CPU, **hidden_devices.AFTERWARDS})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the file of a tensor saved on the first GPU. New processes import modules from its folder."""
    monkeypatch.setattr(importing, "SECONDS", 600.0)  # the limit of a cell is too short for a busy machine
    wanted, facts = facts_of_cpu(), importing.facts_of

    def facts_of(module: str, asked: dict[str, str], variables: Mapping[str, str] | None = None) -> dict[str, str]:
        return dict(wanted) if module == "torch" else facts(module, asked, variables)

    monkeypatch.setattr(hidden_devices, "facts_of", facts_of)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with monkeypatch.context() as changed:
        changed.setattr(torch.serialization, "location_tag", lambda _: "cuda:0")
        torch.save(torch.arange(3), tmp_path / "file.pt")
    return str(tmp_path / "file.pt")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the module stands in for one without a device")
def test_the_module_of_a_device_that_is_not_there_is_right(file: str) -> None:
    found = facts_without_a_device("torch.cuda", "cuda", file, VARIABLES)
    assert found.keys() == programs_without_a_device("cpu").keys()
    assert {name: one for name, one in found.items() if not isinstance(one, torch.Tensor)} == {}


@pytest.mark.skipif(torch.cuda.is_available(), reason="the module stands in for one without a device")
def test_a_module_that_counts_a_device_and_accepts_work_is_found(file: str) -> None:
    Path(file).with_name("of_a_device.py").write_text(WRONG)
    found = facts_without_a_device("of_a_device", "cuda", file, VARIABLES)
    broken = {name: one for name, one in found.items() if isinstance(one, Broken)}
    assert broken.keys() == {"determinism", "is_available", "device_count", "tensor"}
    assert broken["is_available"].lines == (
        "# CUDA_VISIBLE_DEVICES=''", "import of_a_device", "imported.is_available()  # True, expected False",
    )  # fmt: skip


@pytest.mark.parametrize(("code", "message"), [
    (DIES, "ended with -6, asked for survived_free_memory"),
    ("raise ImportError('no driver')", "cannot import of_a_device"),
    ("raise RuntimeError('no driver')", "ended with 1: RuntimeError: no driver"),
])  # fmt: skip
def test_a_process_that_dies_without_a_device_is_found(code: str, message: str, file: str) -> None:
    Path(file).with_name("of_a_device.py").write_text(code)
    with pytest.raises(AssertionError, match=message):
        facts_without_a_device("of_a_device", "cuda", file, VARIABLES)


@pytest.mark.forked  # it sets the number of torch's threads
def test_the_adapter_says_which_variables_hide_the_devices() -> None:
    adapter, program = BareDevice("hand", "meta"), catalogue.find("hidden_devices:programs_without_a_device")
    assert "hidden_by" in programs.judge(program, Capabilities(adapter, "torch"), lambda _: None).skipped
    adapter.hidden_by = VARIABLES  # type: ignore[attr-defined]  # optional
    programs.judge(program, Capabilities(adapter, "torch"), lambda _: None)
    assert HIDDEN_BY["meta"] == VARIABLES
    with pytest.raises(NotOffered):
        programs_without_a_device("xla")
