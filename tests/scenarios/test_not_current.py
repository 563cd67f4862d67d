"""The device that a device type without an index names, on invented devices."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from conformance.scenarios import not_current
from conformance.scenarios.model import NotOffered

RIGHT = {"npu", "npu:1"}


@pytest.mark.parametrize(("answered", "holds"), [(RIGHT, True), ({"npu:1"}, False), (set(), None)])
def test_a_name_without_an_index_is_asked_where_the_name_with_an_index_has_the_right_answer(
    answered: set[str], holds: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(kind: str, form: Any) -> bool:
        return form in answered

    monkeypatch.setattr(not_current, "_second_is_current", lambda _: nullcontext(("npu:0", "npu:1")))
    monkeypatch.setattr(not_current, "ASKED", dict.fromkeys(not_current.WITHOUT_INDEX, asked))
    monkeypatch.setattr(not_current, "_generator", lambda *_: True)
    monkeypatch.setattr(torch, "device", lambda _: type("Device", (), {"type": "npu"}))
    found = not_current.device_without_an_index("npu:0")["get_rng_state"]
    assert isinstance(found, NotOffered) if holds is None else bool(found) == holds


@pytest.mark.forked
def test_a_function_of_the_accelerator_that_makes_its_device_current_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")

    def wrong() -> set[str]:
        found = not_current.current_device_is_left("npu:0")
        return {name for name, holds in found.items() if not isinstance(holds, NotOffered) and not holds}

    assert not wrong()
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda _: torch.accelerator.set_device_index(0))
    assert wrong() == {"accelerator.synchronize"}
