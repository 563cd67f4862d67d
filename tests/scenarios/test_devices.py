"""Answers that change with the first use of a device are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import devices


@pytest.mark.forked  # a process in which the device was not used
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
