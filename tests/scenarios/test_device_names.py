"""Devices under each of their names: functions that use another device are found."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from conformance.scenarios import device_names


@pytest.mark.forked
def test_functions_of_peaks_that_all_mean_the_current_device_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu.testing")
    module: Any = torch.get_device_module("npu")

    def of_current(function: Any, *_: Any) -> Any:
        return function()

    right = device_names.second_device_by_each_name("npu:0")["reset_peak_memory_stats_by_name"]
    for name in ("max_memory_allocated", "reset_peak_memory_stats"):
        monkeypatch.setattr(module, name, partial(of_current, getattr(module, name)))
    wrong = device_names.second_device_by_each_name("npu:0")["reset_peak_memory_stats_by_name"]
    assert (right, wrong) == (torch.tensor(True), torch.tensor(False))


@pytest.mark.forked
def test_functions_that_take_any_kind_of_device_for_their_own_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu.testing")
    module: Any = torch.get_device_module("npu")

    def by_index(function: Any, device: Any) -> Any:
        index = device if isinstance(device, int) else torch.device(device).index
        return function(index or 0)

    assert all(device_names.devices_of_another_kind("npu:0").values())
    names = ("set_device", "memory_allocated")
    for name in names:
        monkeypatch.setattr(module, name, partial(by_index, getattr(module, name)))
    found = {name for name, holds in device_names.devices_of_another_kind("npu:0").items() if not holds}
    assert found == {f"{name}_of_{one}" for name in names for one in ("host", "first_of_host")}


@pytest.mark.forked
def test_a_name_without_an_index_that_means_the_device_of_an_earlier_call_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("refnpu.testing")
    module: Any = torch.get_device_module("npu")
    known: dict[str, int] = {}

    def by_known_name(function: Any, device: Any) -> Any:
        if device == "npu":
            device = known.setdefault(device, torch.accelerator.current_device_index())
        return function(device)

    assert all(device_names.current_device_by_its_kind("npu:0").values())
    monkeypatch.setattr(module, "memory_allocated", partial(by_known_name, module.memory_allocated))
    found = {name for name, holds in device_names.current_device_by_its_kind("npu:0").items() if not holds}
    assert found == {"memory_allocated_by_name"}
