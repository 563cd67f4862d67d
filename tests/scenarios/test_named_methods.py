"""Methods named after the device: a wrong one is found, and what torch generates is right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios.model import NotOffered
from conformance.scenarios.named_methods import methods_named_after_the_device

pytest.importorskip("refnpu", reason="the reference NPU is not installed")


def wrong_on(device: str) -> set[str]:
    found = methods_named_after_the_device(device)
    assert not any(isinstance(one, NotOffered) for one in found.values())
    return {name for name, one in found.items() if not bool(one)}


@pytest.mark.forked
def test_the_methods_that_torch_generates_are_right() -> None:
    assert not wrong_on("npu:0")
    assert not wrong_on("npu:1")


@pytest.mark.forked
def test_a_method_that_sends_to_the_first_device_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(self: torch.Tensor, _: Any = None, **options: Any) -> torch.Tensor:
        return self.to("npu:0", **options)

    monkeypatch.setattr(torch.Tensor, "npu", first)
    assert not wrong_on("npu:0")
    assert {"sends.by_index", "sends.current", "moves_modules.current"} <= wrong_on("npu:1")


@pytest.mark.forked
def test_a_method_that_sends_nothing_where_it_gets_an_option_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = torch.Tensor.npu  # as torch generates it

    def stays(self: torch.Tensor, *index: Any, **options: Any) -> Any:
        return self.to("cpu", **options) if options else own(self, *index)

    monkeypatch.setattr(torch.Tensor, "npu", stays)
    ways = ("by_index", "current")
    assert {f"sends_{what}.{way}" for what in ("in_another_order", "without_blocking") for way in ways} == wrong_on(
        "npu:0"
    )


@pytest.mark.forked
def test_a_method_that_always_copies_or_loses_the_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def dense(self: torch.Tensor, index: Any = None, **_: Any) -> torch.Tensor:
        return self.contiguous().to(torch.device("npu", index or 0), copy=True)

    monkeypatch.setattr(torch.Tensor, "npu", dense)
    assert {"sends.by_index", "keeps_what_is_there.by_index", "sends_in_another_order.by_index"} <= wrong_on("npu:0")
