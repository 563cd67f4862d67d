"""Functions that use the first device in place of the current device are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import queries
from conformance.scenarios.model import NotOffered


@pytest.mark.forked
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("current_stream", {"current_stream"}),
        ("get_rng_state", {"get_rng_state"}),
        ("memory_allocated", {"memory_allocated"}),
        ("reset_peak_memory_stats", {"reset_peak_memory_stats"}),
        ("default_stream", {"default_stream"}),
        ("Stream", {"Stream"}),
    ],
)
def test_a_function_about_the_first_device_in_place_of_the_current_one_is_found(
    name: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    right = getattr(module, name)
    assert not wrong()
    monkeypatch.setattr(module, name, lambda device=0: right(device))
    assert wrong() == expected


def wrong() -> set[str]:
    found = queries.without_a_device("npu:0")
    return {name for name, holds in found.items() if not isinstance(holds, NotOffered) and not holds}
