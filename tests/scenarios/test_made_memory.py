"""Memory that is allocated on another device, counted on another device, or not freed is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import made_memory
from conformance.scenarios.model import NotOffered

KEPT: list[torch.Tensor] = []


def _kept(x: torch.Tensor) -> torch.Tensor:
    KEPT.append(x.clone())
    return x.clone()


@pytest.mark.forked
@pytest.mark.parametrize(
    ("way", "holds"),
    [
        (torch.clone, (True, True)),
        (lambda x: x.to(x.device.type, copy=True), (True, False)),  # the current device
        (lambda x: x, (False, False)),  # allocates nothing
        (lambda x: (x.clone(), x.cpu().to("npu:2"))[0], (True, True)),  # temporary memory does not count
        (_kept, (False, False)),
    ],
)
def test_memory_of_another_device_and_memory_that_stays_are_found(
    way: Any, holds: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    monkeypatch.setattr(made_memory, "WAYS", {"way": way})
    found = made_memory.memory_of_each_way("npu:0")
    assert (bool(found["way"]), bool(found["way.elsewhere"])) == holds


@pytest.mark.forked
def test_memory_that_counts_on_the_current_device_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    allocated = module.memory_allocated
    monkeypatch.setattr(made_memory, "WAYS", {"way": torch.clone})
    monkeypatch.setattr(module, "memory_allocated", lambda _: allocated())
    found = made_memory.memory_of_each_way("npu:0")
    assert not isinstance(found["way"], NotOffered)
    assert not found["way"]


def _staged(x: torch.Tensor, to: torch.device) -> torch.Tensor:
    return x.to("npu:0").to(to)


@pytest.mark.forked
@pytest.mark.parametrize(("copy", "right"), [(lambda x, to: x.to(to), True), (_staged, False)])
def test_memory_for_a_moment_of_a_device_that_has_no_part_is_found(
    copy: Any, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    monkeypatch.setattr(made_memory, "WAYS", {"way": lambda x: copy(x, x.device).clone()})
    monkeypatch.setattr(made_memory, "COPIES", {"way": copy})
    found = made_memory.memory_of_other_devices("npu:0")
    assert {name: bool(one) for name, one in found.items()} == {"way": right, "way_copy": right}
