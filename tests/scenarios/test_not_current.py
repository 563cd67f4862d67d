"""What the name of a kind of device means, on devices that are made up."""

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
