"""Kernels that a user registers for a device: a call that does not reach them, or loses what it writes, is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import user_kernels
from conformance.scenarios.model import NotOffered
from tests.scenarios.altered import different

# The tests define ops in the process, and gradients start threads.
pytestmark = pytest.mark.forked


def found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> set[str]:
    return different(user_kernels.kernels_of_the_device, lambda: monkeypatch.setattr(user_kernels, name, wrong))


def test_a_kernel_that_gets_a_copy_of_what_it_writes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def scale(of: str, x: torch.Tensor, by: float) -> None:
        user_kernels.CALLS.append((of, x.device.type))
        x.clone().mul_(by)

    assert found(monkeypatch, "_scale", scale) == {"written", "part_written"}


def test_arguments_that_autocast_converts_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(of: str, x: torch.Tensor, by: float) -> torch.Tensor:
        user_kernels.CALLS.append((of, x.device.type))
        return x * by + torch.is_autocast_enabled("cpu")

    assert found(monkeypatch, "_scaled", scaled) == {"autocast", "gradient_in_autocast"}


def test_a_call_that_reaches_no_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(said: str) -> None:
        def scaled(of: str, x: torch.Tensor, by: float) -> torch.Tensor:
            raise NotImplementedError(said)

        monkeypatch.setattr(user_kernels, "_scaled", scaled)

    refuse("no kernel for mul")
    assert isinstance(user_kernels.kernels_of_the_device("cpu")["plain"], NotOffered)
    refuse(f"Could not run '{user_kernels.NAMESPACE}::scaled_cpu'")
    with pytest.raises(AssertionError, match="scaled_cpu"):
        user_kernels.kernels_of_the_device("cpu")


def test_the_kernel_of_cpu_in_place_of_the_device_s_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    register = torch.library.CustomOpDef.register_kernel

    def of_cpu_alone(op: Any, device: Any, *given: Any) -> Any:
        return register(op, device, *given) if device == "cpu" else lambda kernel: kernel

    monkeypatch.setattr(torch.library.CustomOpDef, "register_kernel", of_cpu_alone)
    plain = user_kernels.kernels_of_the_device("npu:0")["plain"]
    assert isinstance(plain, torch.Tensor)
    assert plain.tolist() == [0, 2, 4, 6, 8, 10, 1, 0]
