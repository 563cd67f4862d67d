"""Answers that change with the first use of a device, and forked processes that do not end well, are found."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.scenarios import devices


@pytest.mark.forked  # the process must not have used the device
@pytest.mark.parametrize("right", [True, False])
def test_an_answer_that_is_right_only_behind_the_first_use_is_found(
    right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    if not right:
        monkeypatch.setattr(module, "is_available", module.is_initialized)
    found = devices._uninitialized_behind("npu:0", "is_available")  # noqa: SLF001
    assert bool(found["same answer"]) is right
    assert found["uninitialized"]


def die() -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def hang() -> bool:
    time.sleep(600)
    return True


@pytest.mark.forked
@pytest.mark.parametrize(
    ("work", "right"),
    [(lambda: True, True), (lambda: bool(1 / 0), True), (lambda: False, False), (die, False), (hang, False)],
)
def test_a_forked_process_that_dies_hangs_or_is_wrong_is_found(
    work: Callable[[], bool], right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not right:
        monkeypatch.setattr(devices, "PATIENCE", 2.0)
    assert devices._ends_well(work) is right  # noqa: SLF001
