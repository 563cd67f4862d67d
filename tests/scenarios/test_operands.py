"""Operands and results on several devices, on devices that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.scenarios import operands
from tests.scenarios.altered import different


@pytest.fixture(autouse=True)
def npu() -> None:
    pytest.importorskip("refnpu")


def wrong(results: dict[str, Any]) -> set[str]:
    return {name for name, one in results.items() if not bool(one)}


@pytest.mark.forked
def test_a_device_that_takes_operands_of_the_host_for_its_own_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not wrong(operands.operands_on_both_sides("npu:0"))
    add = torch.Tensor.add_

    def nothing_read(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return add(a, b) if a.device == b.device else a

    monkeypatch.setattr(torch.Tensor, "add_", nothing_read)
    assert wrong(operands.operands_on_both_sides("npu:0")) == {"add__device_first", "add__host_first"}


Made = Callable[..., torch.Tensor]


def on_own_device(made: Made) -> Made:
    return lambda x, *args, **kwargs: made(x, *args, **{**kwargs, "device": x.device})


def dense(made: Made) -> Made:
    return lambda x, *args, **kwargs: made(x, *args, **kwargs).contiguous()


@pytest.mark.forked
@pytest.mark.parametrize(("name", "change", "found"), [
    ("zeros_like", on_own_device, {"dense.to_meta", "number.to_meta"}),
    ("ones_like", dense, {"channels_last.down", "channels_last.up", "transposed.up"}),
])  # fmt: skip
def test_a_result_on_the_wrong_device_or_with_other_strides_is_found(
    name: str, change: Callable[[Made], Made], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = different(
        operands.made_on_another_device, lambda: monkeypatch.setattr(torch, name, change(getattr(torch, name)))
    )
    assert {f"{name}.{one}" for one in found} <= names
    assert all(one.startswith(f"{name}.") for one in names)


@pytest.mark.forked
def test_a_tensor_made_on_the_current_device_in_place_of_the_named_one_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("refnpu")
    eye = torch.eye

    def found() -> set[str]:
        results = operands.factories_on_a_named_device("npu:0")
        return {name for name, one in results.items() if not isinstance(one, torch.Tensor) or not one.all()}

    assert not found()
    monkeypatch.setattr(torch, "eye", lambda *sizes, device: eye(*sizes, device=torch.device(device).type))
    assert found() == {"eye.elsewhere"}
