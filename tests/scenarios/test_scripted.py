"""TorchScript: saved modules that compute something else, and parts that stay on another device, are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import scripted
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # they run `backward`


def test_the_program_gives_the_same_results_again_whatever_is_drawn() -> None:
    assert different(scripted.modules, lambda: None) == set()


def test_parameters_that_a_file_does_not_keep_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = torch.jit.load

    def forgetful(*given: Any, **named: Any) -> Any:
        module = load(*given, **named)
        for parameter in module.parameters():
            torch.nn.init.constant_(parameter, 0.25)
        return module

    found = different(scripted.modules, lambda: monkeypatch.setattr(torch.jit, "load", forgetful))
    assert found == {"traced_and_saved", "scripted_and_saved", "saved_on_the_host", "loaded_on_the_host"}


def test_a_part_that_is_elsewhere_is_an_error() -> None:
    module = torch.nn.BatchNorm1d(3)
    module.register_buffer("elsewhere", torch.ones(1, device="meta"))
    with pytest.raises(AssertionError, match=r"a part is on \['meta'\], not on cpu"):
        scripted.result_of(module, "cpu")
