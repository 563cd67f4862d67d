"""Processes that end: a process that dies, prints nothing or does not end is found."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from conformance.scenarios import endings, patience
from conformance.scenarios.endings import ENDINGS, processes_end
from conformance.scenarios.model import NotOffered


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of the module that a new process imports to know the device, which is CPU here."""
    monkeypatch.setattr(endings, "SECONDS", 600.0)  # the limit of a cell is too short for a busy machine
    monkeypatch.setattr(endings, "loaded_by", lambda _: "of_a_device")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "of_a_device.py"
    file.touch()
    return file


def end_of(name: str) -> tuple[int, float]:
    return endings.ended(ENDINGS[name], "cpu")


@pytest.mark.parametrize("name", ENDINGS)
def test_a_process_of_cpu_ends_as_it_wants_to(name: str, module: Path) -> None:
    assert module.exists()
    assert end_of(name) == (ENDINGS[name].exit_code, ENDINGS[name].says)


def test_a_process_that_dies_at_its_end_is_found(module: Path) -> None:
    module.write_text("import atexit, os\natexit.register(os.abort)\n")
    assert end_of("work_at_the_end") == (-6, 8192.0)


def test_a_process_that_loses_the_work_of_its_end_is_found(module: Path) -> None:
    module.write_text("import torch\ntorch.Tensor.__add__ = torch.Tensor.__sub__\n")
    assert end_of("work_at_the_end") == (0, 0.0)


def test_a_process_that_does_not_end_is_found(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_late(command: Sequence[str], seconds: float) -> NoReturn:
        subprocess.run(command, check=False, capture_output=True)
        raise subprocess.TimeoutExpired(command, seconds)

    assert module.exists()
    monkeypatch.setattr(patience, "run", run_late)
    with pytest.raises(AssertionError, match="a process has not ended in time"):
        end_of("error")


def test_a_process_that_does_not_begin_is_found(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(endings, "SECONDS", 0.1)
    with pytest.raises(AssertionError, match="a process has not begun in time"):
        end_of("error")


def test_a_device_that_a_new_process_does_not_know_offers_nothing(module: Path) -> None:
    module.write_text("raise ImportError('no driver')\n")
    with pytest.raises(NotOffered, match="new process"):
        end_of("error")


def test_cpu_says_what_is_promised() -> None:
    assert {
        name: float(number) for name, number in processes_end("cpu").items() if isinstance(number, torch.Tensor)
    } == {
        "work_in_flight.exit_code": 0,
        "work_at_the_end.exit_code": 0,
        "error.exit_code": 1,
        "work_in_flight.says": 4096,
        "work_at_the_end.says": 8192,
        "error.says": 8192,
    }
